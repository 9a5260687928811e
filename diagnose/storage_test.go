package diagnose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// slowStore starts ranks that load from a FUSE store, and gives the root of
// them. The store can be stopped with SIGUSR1.
func slowStore(t *testing.T, args ...string) (store *scenario.Process, root int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("slow_store needs root")
	}
	dir := t.TempDir()
	try := exec.Command(scenario.Build(t, "slow_store"), dir, "read", "0", "1")
	try.Stdin = strings.NewReader("")
	if out, _ := try.Output(); strings.HasPrefix(string(out), "cannot") {
		t.Skip("slow_store " + strings.TrimSpace(string(out)))
	}
	store = scenario.Start(t, "slow_store", append([]string{dir}, args...)...)
	root, err := strconv.Atoi(store.Ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.End)
	return store, root
}

// noneWaits holds, at the end of a test, that nothing outlives its stores: the
// end of one closes /dev/fuse, which wakes all who wait for it, whyhang's own
// children as well.
func noneWaits(t *testing.T) {
	t.Cleanup(func() {
		left := ""
		for range 250 {
			if left = waitForFUSE(); left == "" {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("still waits for a store: %s", left)
	})
}

// waitForFUSE names a process of this test that waits for a FUSE server.
func waitForFUSE() string {
	ours, _ := scenario.Dir()
	files, _ := filepath.Glob("/proc/[0-9]*/task/*/wchan")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if string(b) != "request_wait_answer" {
			continue
		}
		argv, _ := os.ReadFile(filepath.Dir(filepath.Dir(filepath.Dir(f))) + "/cmdline")
		if name := string(argv); strings.HasPrefix(name, ours) || strings.HasPrefix(name, os.Args[0]) {
			return f + " " + strings.ReplaceAll(name, "\x00", " ")
		}
	}
	return ""
}

// inTime holds that a run ends soon after its window.
func inTime(t *testing.T, o Options, took time.Duration) {
	t.Helper()
	t.Logf("took %s of a window of %s", took.Round(10*time.Millisecond), o.Window)
	if took > o.Window+10*time.Second {
		t.Errorf("took %s", took)
	}
}

// A slow store: each read takes its time, and the load goes on.
func TestSlowStore(t *testing.T) {
	noneWaits(t)
	for _, args := range [][]string{{"read", "20", "1"}, {"pread", "50", "1"}, {"mmap", "50", "1"}} {
		t.Run(name(args), func(t *testing.T) {
			t.Parallel()
			_, root := slowStore(t, args...)
			time.Sleep(500 * time.Millisecond)
			o, begun := quick(root), time.Now()
			j := diagnosed(t, o)
			expect(t, j, rule.Loading, rule.WeightsRead)
			inTime(t, o, time.Since(begun))
			if w := j.Case.Weights; w == nil || w.FSType != "fuse" || w.TotalBytes != 1<<30 {
				t.Errorf("%+v", w)
			}
			neverShrinks(t, j.Case.Snapshot)
			for _, f := range j.Findings {
				if f.Verdict == rule.Stalled {
					t.Errorf("%s: %s", f.Rule, f.Says)
				}
			}
			t.Logf("%s (uncertain by %.2f, %s)", j.Sentence, j.Case.WeightsDone.Uncertainty, j.Strength)
		})
	}
}

// neverShrinks holds that whyhang did not take pages from the target: on FUSE
// it is enough to open its file.
func neverShrinks(t *testing.T, s *evidence.Snapshot) {
	t.Helper()
	var before uint64
	for n := range s.Frames {
		for _, f := range s.Frames[n].Processes[0].Files {
			if f.ResidentBytes == nil {
				continue
			}
			if *f.ResidentBytes < before {
				t.Errorf("look %d: %d bytes are mapped in, it were %d", n, *f.ResidentBytes, before)
			}
			before = *f.ResidentBytes
		}
	}
	if u := s.Weights.Unread; u == nil || u.Status != evidence.Skipped {
		t.Errorf("headers on FUSE: %+v", u)
	}
}

// The twin: the same mount has stopped answering, whatever it is asked.
func TestDeadStore(t *testing.T) {
	noneWaits(t)
	for _, args := range [][]string{{"read", "20", "1"}, {"pread", "20", "1"}, {"mmap", "20", "1"}, {"mmap", "20", "2"}, {"open", "20", "1"}} {
		t.Run(name(args), func(t *testing.T) {
			t.Parallel()
			store, root := slowStore(t, args...)
			time.Sleep(700 * time.Millisecond)
			if err := store.Cmd.Process.Signal(syscall.SIGUSR1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
			o, begun := quick(root), time.Now()
			j := diagnosed(t, o)
			expect(t, j, rule.Stalled, rule.Storage)
			inTime(t, o, time.Since(begun))
			if j.Strength != rule.Strong || j.Carried == nil || len(j.Carried.Culprits) == 0 {
				t.Fatalf("%s, %+v", j.Strength, j.Carried)
			}
			if args[0] == "open" {
				// Without a file in its hands, the mount is known only if it is the
				// only one of FUSE.
				if !strings.Contains(j.Sentence, "in openat (request_wait_answer)") && !strings.Contains(j.Sentence, "in close (request_wait_answer)") {
					t.Errorf("not in openat or close: %s", j.Sentence)
				}
				return
			}
			for _, want := range []string{"fuse mount", "from store"} {
				if !strings.Contains(j.Sentence, want) {
					t.Errorf("no %q in: %s", want, j.Sentence)
				}
			}
			if args[0] != "mmap" && !strings.Contains(j.Sentence, "model.safetensors") {
				t.Errorf("no file in: %s", j.Sentence)
			}
			if !strings.HasPrefix(j.Next[0].Command, "timeout 5 ls ") {
				t.Errorf("next: %+v", j.Next[0])
			}
			t.Log(j.Sentence)
		})
	}
}

// A store that dies while whyhang looks, after it gave bytes: they came, so it is
// loading; the next look says that it stalled.
func TestStoreDiesMeanwhile(t *testing.T) {
	store, root := slowStore(t, "mmap", "20", "1")
	time.AfterFunc(1500*time.Millisecond, func() { _ = store.Cmd.Process.Signal(syscall.SIGUSR1) })
	time.Sleep(300 * time.Millisecond)
	expect(t, diagnosed(t, quick(root)), rule.Loading, rule.WeightsRead)
	expect(t, diagnosed(t, quick(root)), rule.Stalled, rule.Storage)
}

// Rests that are shorter than the window are part of a load, whatever the
// moment it is looked at.
func TestRestsAreNoStall(t *testing.T) {
	_, root := slowStore(t, "pread", "0", "1", "32", "4000")
	for i := range 2 {
		time.Sleep(time.Duration(1500+900*i) * time.Millisecond) // it opens the file after it said that it is there
		j := diagnosed(t, quick(root))
		expect(t, j, rule.Loading, rule.WeightsRead)
		t.Log(j.Sentence)
	}
}

// S3: two ranks map the same file of a gigabyte and touch its pages with rests in
// between. The twin, in which the store has stopped, is in TestDeadStore.
func TestTwoRanksOfALocalFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	s := scenario.Start(t, "load", "mmap", path, "1024", "20", "700", "2")
	begun := time.Now()
	time.Sleep(time.Second)
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Loading, rule.WeightsRead)
	w := j.Case.WeightsDone
	truth := 1024.0/20 - j.Case.Taken.Sub(begun).Seconds()
	if len(w.Ranks) != 2 || w.TotalBytes != 1<<30 || w.ETALow > truth || w.ETAHigh < truth {
		t.Errorf("%d ranks, %v bytes, %.0f to %.0f s left, in truth %.0f", len(w.Ranks), w.TotalBytes, w.ETALow, w.ETAHigh, truth)
	}
	t.Logf("%s (%.0f to %.0f, in truth %.0f)", j.Sentence, w.ETALow, w.ETAHigh, truth)
}

// Two ranks read the same gigabyte at different speeds: how far is that of the
// slower one, of one gigabyte and not of two.
func TestTwoRanks(t *testing.T) {
	for _, how := range []string{"mmap", "read"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			_, root := slowStore(t, how, "10", "2")
			time.Sleep(3 * time.Second)
			j := diagnosed(t, quick(root))
			expect(t, j, rule.Loading, rule.WeightsRead)
			w := j.Case.WeightsDone
			if len(w.Ranks) != 2 || w.Split || w.TotalBytes != 1<<30 {
				t.Fatalf("%d ranks, split %v, %v bytes", len(w.Ranks), w.Split, w.TotalBytes)
			}
			if w.PID != w.Ranks[0].PID || w.Ranks[0].Done > w.Ranks[1].Done || w.DoneBytes >= 1<<30 {
				t.Errorf("%+v", w.Ranks)
			}
			if want := fmt.Sprintf("process %d", w.PID); !strings.Contains(j.Sentence, want) {
				t.Errorf("no %q in: %s", want, j.Sentence)
			}
			t.Log(j.Sentence)
		})
	}
}

package diagnose

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	probes.ChildMain(Children())
	// What other tests use is no cost of a wait.
	screenShare, closeShare = 1, 1
	code := m.Run()
	scenario.Remove()
	os.Exit(code)
}

// quick are the options of a run that need not wait long for the doubtful.
func quick(pid int) Options {
	return Options{PID: pid, Window: 6 * time.Second, CheckTimeout: 20 * time.Second, BenchBudget: 20 * time.Second, NoBench: true, TolerancePct: 10}
}

// diagnosed runs a diagnosis, and holds that a replay of its snapshot, saved
// and loaded again, says the same.
func diagnosed(t *testing.T, o Options) *rules.Judgement {
	t.Helper()
	j, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot.json.gz")
	if err := Save(path, j.Case.Snapshot); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	again := Replay(s, ReplayOptions{})
	if again.Verdict != j.Verdict || again.Cause != j.Cause || again.Strength != j.Strength || again.Sentence != j.Sentence {
		t.Errorf("replay says %s/%s (%s) %q, the run said %s/%s (%s) %q", again.Verdict, again.Cause, again.Strength, again.Sentence, j.Verdict, j.Cause, j.Strength, j.Sentence)
	}
	return j
}

func expect(t *testing.T, j *rules.Judgement, v rule.Verdict, c rule.Cause) {
	t.Helper()
	if j.Verdict != v || j.Cause != c {
		t.Errorf("%s/%s (%s), want %s/%s: %s", j.Verdict, j.Cause, j.Strength, v, c, j.Sentence)
		for _, p := range j.Case.Probes {
			t.Logf("  %s %s %s", p.Name, p.Status, p.Detail)
		}
	}
}

func TestDeadlockIsProved(t *testing.T) {
	s := scenario.Start(t, "abba")
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Deadlocked, rule.LockCycle)
	if j.Strength != rule.Proved || j.ExitCode != 5 {
		t.Errorf("%s, exit code %d", j.Strength, j.ExitCode)
	}
	f := j.Carried
	if len(f.Culprits) != 2 || f.Culprits[0].TID == f.Culprits[1].TID || f.Culprits[0].TID == 0 {
		t.Fatalf("culprits %+v", f.Culprits)
	}
	for i, c := range f.Culprits {
		other := f.Culprits[1-i]
		if !strings.Contains(j.Sentence, fmt.Sprintf("held by thread %d", c.TID)) || !strings.Contains(c.Where, fmt.Sprint(other.TID)) || !strings.Contains(c.Where, "mutex 0x") {
			t.Errorf("the sentence names thread %d badly: %s", c.TID, j.Sentence)
		}
	}
	t.Logf("took %.0f ms", j.Case.TookMS)
}

func TestOtherCircles(t *testing.T) {
	for _, args := range [][]string{{"cycle", "7"}, {"join_cycle"}, {"relock"}, {"pshared"}} {
		t.Run(args[0], func(t *testing.T) {
			j := diagnosed(t, quick(scenario.Start(t, args[0], args[1:]...).PID))
			expect(t, j, rule.Deadlocked, rule.LockCycle)
		})
	}
}

// The twin of the deadlock: threads that hold and want locks all the time, in
// a fixed order. More runs: WHYHANG_RUNS=200 go test ./diagnose -run TestFixedOrder
func TestFixedOrder(t *testing.T) {
	runs := 12
	if n := os.Getenv("WHYHANG_RUNS"); n != "" {
		fmt.Sscan(n, &runs)
	}
	s := scenario.Start(t, "ordered")
	verdicts := map[rule.Verdict]int{}
	for range runs {
		o := quick(s.PID)
		o.Window = 200 * time.Millisecond
		j := diagnosed(t, o)
		verdicts[j.Verdict]++
		if j.Verdict == rule.Deadlocked {
			t.Errorf("a healthy program: %s", j.Sentence)
		}
		for _, f := range j.Findings {
			if f.Rule == "lock-cycle" {
				t.Errorf("a circle that is none (%s): %s", f.Strength, f.Says)
			}
		}
	}
	t.Logf("%d runs: %v", runs, verdicts)
}

// The other twin: the same threads asleep, in an idle HTTP server.
func TestIdleServer(t *testing.T) {
	s := scenario.Start(t, "idle_http")
	for _, passive := range []bool{false, true} {
		o := quick(s.PID)
		o.Passive = passive
		j := diagnosed(t, o)
		if j.Verdict == rule.Deadlocked || j.Verdict == rule.Stalled || j.Verdict == rule.Broken || j.Verdict == rule.Loading {
			t.Errorf("passive %v: %s/%s: %s", passive, j.Verdict, j.Cause, j.Sentence)
		}
		if passive {
			expect(t, j, rule.Unknown, rule.NotAsked)
		} else {
			expect(t, j, rule.Unknown, rule.Conflicting) // it has no chat API
		}
		if passive && j.Case.Check != nil {
			t.Error("asked although passive")
		}
	}
}

func TestWeightsRead(t *testing.T) {
	for _, how := range []string{"mmap", "read", "pread"} {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.safetensors")
			s := scenario.Start(t, "load", how, path, "2048", "50")
			begun := time.Now()
			j := diagnosed(t, quick(s.PID))
			expect(t, j, rule.Loading, rule.WeightsRead)
			if j.Carried == nil || j.Carried.Phase == nil {
				t.Fatal("no phase")
			}
			p := j.Carried.Phase
			if p.Total != 2048<<20 || p.Done <= 0 || p.ETA == nil {
				t.Fatalf("%+v", p)
			}
			truth := 2048.0/50 - j.Case.Taken.Sub(begun).Seconds()
			if off := math.Abs(*p.ETA-truth) / truth; off > 0.25 {
				t.Errorf("%.1f s left, in truth %.1f (%.0f %% off)", *p.ETA, truth, off*100)
			}
			if *p.ETALow > truth || *p.ETAHigh < truth {
				t.Errorf("%.1f to %.1f s left, in truth %.1f", *p.ETALow, *p.ETAHigh, truth)
			}
			pages := j.Case.Moves.Most(facts.PageCache)
			switch u := j.Case.Weights.PageCacheUnread; {
			case u != nil:
				t.Logf("page cache: %s: %s", u.Status, u.Why)
			case pages == nil || pages.PerS < 25<<20 || pages.PerS > 150<<20: // readahead comes in steps
				t.Errorf("page cache: %+v", pages)
			}
			t.Logf("%s of 2 GiB, %.1f s left, in truth %.1f; took %.0f ms", j.Sentence, *p.ETA, truth, j.Case.TookMS)
		})
	}
}

// The twin of the loads: the same file in its hands, and a store that has
// stopped answering. That another program reads the same model meanwhile is no
// movement of this one.
func TestStoppedLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	s := scenario.Start(t, "load", "stop", path, "512", "500")
	time.Sleep(300 * time.Millisecond)
	another, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	go func() {
		for {
			if _, err := io.CopyN(io.Discard, another, 4<<20); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.NoMovement)
	if j.Case.Weights.PageCacheUnread == nil && j.Case.Moves.Most(facts.PageCache) == nil {
		t.Error("the page cache did not grow")
	}
}

func TestWeightsConvert(t *testing.T) {
	s := scenario.Start(t, "convert", filepath.Join(t.TempDir(), "model.safetensors"), "128")
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Loading, rule.WeightsConvert)
}

// The twin of the conversion: the same loop in a process without weights.
func TestSpinIsNoConversion(t *testing.T) {
	s := scenario.Start(t, "convert", "-", "0")
	o := quick(s.PID)
	o.Window = 2 * time.Second
	expect(t, diagnosed(t, o), rule.Unknown, rule.NotAServer)
}

// A target that ends in the middle is gone, with its exit status.
func TestTargetDies(t *testing.T) {
	s := scenario.Start(t, "convert", "-", "0")
	time.AfterFunc(700*time.Millisecond, func() { _ = s.Cmd.Process.Kill() })
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Gone, rule.Exited)
	if !strings.Contains(j.Sentence, "SIGKILL") {
		t.Errorf("not how it ended: %s", j.Sentence)
	}
}

// The file of the log is read through the server's own descriptor, also after
// it was removed.
func TestLogFound(t *testing.T) {
	s, log := loggingServer(t, "abba", "3")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	j := diagnosed(t, quick(s.PID))
	if len(j.Case.Logs) != 1 || j.Case.Logs[0].Lines != 312 || j.Case.Logs[0].SizeBytes == 0 {
		t.Fatalf("%+v", j.Case.Logs)
	}
	expect(t, j, rule.Deadlocked, rule.LockCycle)
	for _, p := range j.Case.Probes {
		if p.Name == evidence.ProbeLog && p.Status != evidence.OK {
			t.Errorf("%+v", p)
		}
	}
}

package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestLookAtThreads(t *testing.T) {
	r := reader(t)
	s := scenario.Start(t, "abba", "10")
	frames, run := r.Look(context.Background(), treeOf(t, r, s.PID), LookOptions{Threads: true})
	if run.Name != evidence.ProbeThreads || run.Status != evidence.OK || len(frames) != 1 {
		t.Fatalf("%+v, %d frames", run, len(frames))
	}
	f := frames[0]
	if f.PID != s.PID || f.State != "S" || f.ThreadCount != 13 || len(f.Threads) != 13 || f.RSSAnonBytes == nil ||
		f.RSSFileBytes == nil || *f.RSSFileBytes == 0 || f.SwapBytes == nil || f.ReadCharBytes == nil || f.MinorFaults == 0 {
		t.Errorf("%+v", f)
	}
	futex := strconv.Itoa(int(sysFutex(runtime.GOARCH))) + " "
	for i, th := range f.Threads {
		if th.Name != "abba" || th.State != "S" || th.Wchan == "" || th.RunNS == nil || th.Slices == nil || th.DelayNS == nil {
			t.Errorf("%+v", th)
		}
		if i > 0 && !strings.HasPrefix(th.Syscall, futex) {
			t.Errorf("thread %d: %s", i, th.Syscall)
		}
		if i > 0 && th.TID <= f.Threads[i-1].TID {
			t.Error("threads are not in order")
		}
	}
	// Counters alone cost no thread.
	frames, run = r.Look(context.Background(), treeOf(t, r, s.PID), LookOptions{})
	if run.Name != evidence.ProbeProcess || frames[0].Threads != nil || frames[0].ThreadCount != 13 {
		t.Errorf("%+v %+v", run, frames[0])
	}
}

// Our own threads run: the numbers must move.
func TestLookSeesMovement(t *testing.T) {
	r := reader(t)
	procs := treeOf(t, r, os.Getpid())[:1]
	before, _ := r.Look(context.Background(), procs, LookOptions{})
	var data [][]byte
	for start := time.Now(); time.Since(start) < 100*time.Millisecond; {
		if len(data) < 256 {
			b := make([]byte, 1<<16)
			for i := range b {
				b[i] = 1
			}
			data = append(data, b)
		}
	}
	after, _ := r.Look(context.Background(), procs, LookOptions{})
	b, a := before[0], after[0]
	if a.UserMS+a.SystemMS <= b.UserMS+b.SystemMS || *a.ReadCharBytes <= *b.ReadCharBytes || a.MinorFaults <= b.MinorFaults {
		t.Errorf("nothing moved: %+v, %+v (%d)", b, a, len(data))
	}
}

// bigFile makes a sparse weight file.
func bigFile(t *testing.T, name string, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWeightFiles(t *testing.T) {
	const size, touched, read = 80 << 20, 8 << 20, 3 << 20
	for _, tc := range []struct {
		name         string
		touch, read  int
		weights      bool
		size         int64
		mapped, open bool
	}{
		{"model two  spaces.safetensors", touched, read, true, size, true, true},
		{"mapped.gguf", touched, 0, true, size, true, false},
		{"consolidated.00.pth", 0, read, true, size, false, true},
		{"path.pth", 0, 1 << 20, false, 2 << 20, false, false}, // too small to be weights
		{"notes.txt", touched, read, false, size, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := bigFile(t, tc.name, tc.size)
			r := reader(t)
			s := scenario.Start(t, "holds_file", path, strconv.Itoa(tc.touch), strconv.Itoa(tc.read))
			procs := treeOf(t, r, s.PID)
			frames, _ := r.Look(context.Background(), procs, LookOptions{})
			if !tc.weights {
				if len(procs[0].Files) != 0 || len(frames[0].Files) != 0 {
					t.Fatalf("%+v %+v", procs[0].Files, frames[0].Files)
				}
				return
			}
			if len(procs[0].Files) != 1 || len(frames[0].Files) != 1 {
				t.Fatalf("%+v %+v", procs[0].Files, frames[0].Files)
			}
			f, ff := procs[0].Files[0], frames[0].Files[0]
			if f.Path != path || ff.Path != path || f.SizeBytes == nil || *f.SizeBytes != uint64(tc.size) || f.Mapped != tc.mapped {
				t.Errorf("%+v", f)
			}
			if tc.mapped {
				if f.MappedBytes != uint64(tc.size) || f.ResidentBytes == nil || *f.ResidentBytes < touched || *f.ResidentBytes > touched+4<<20 ||
					ff.ResidentBytes == nil || *ff.ResidentBytes != *f.ResidentBytes {
					t.Errorf("mapped: %+v, resident %v", f, f.ResidentBytes)
				}
			}
			if tc.open != (f.FD >= 0) || f.FD != ff.FD {
				t.Errorf("descriptor %d and %d", f.FD, ff.FD)
			}
			if tc.open && (f.PosBytes == nil || *f.PosBytes != uint64(tc.read) || *ff.PosBytes != uint64(tc.read)) {
				t.Errorf("position %v", f.PosBytes)
			}
		})
	}
}

// A process that ends while it is looked at is a process that has vanished.
func TestProcessEndsDuringPass(t *testing.T) {
	r := reader(t)
	ctx := context.Background()
	seenGone := 0
	for round := range 30 {
		s := scenario.Start(t, "abba", "60")
		procs := treeOf(t, r, s.PID)
		go func() {
			time.Sleep(time.Duration(round) * 200 * time.Microsecond)
			s.Cmd.Process.Kill()
		}()
		for {
			frames, _ := r.Look(ctx, procs, LookOptions{Threads: true})
			r.Waits(ctx, procs)
			if st := frames[0].State; st == "Z" || st == "" || st == "X" {
				seenGone++
				break
			}
		}
	}
	if seenGone != 30 {
		t.Errorf("seen to be gone %d times of 30", seenGone)
	}
}

// Threads that come and go all the time do not disturb.
func TestThreadsComeAndGo(t *testing.T) {
	r := reader(t)
	s := scenario.Start(t, "churn", "10000")
	procs := treeOf(t, r, s.PID)
	ctx := context.Background()
	var passes atomic.Int64
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); passes.Add(1) {
		frames, run := r.Look(ctx, procs, LookOptions{Threads: true})
		if run.Status != evidence.OK || frames[0].State == "" {
			t.Fatalf("%+v %+v", run, frames[0])
		}
		for _, th := range frames[0].Threads {
			if th.State == "" || th.TID == 0 {
				t.Fatalf("%+v", th)
			}
		}
		look, run := r.Waits(ctx, procs)
		if run.Status != evidence.OK {
			t.Fatalf("%+v", run)
		}
		for _, w := range look.Waits {
			if w.Futex.Mutex != nil {
				t.Errorf("a mutex: %+v", w.Futex.Mutex)
			}
		}
	}
	t.Logf("%d passes", passes.Load())
}

// A process that is stopped shows the system call it was in, and its state.
func TestStoppedProcess(t *testing.T) {
	r := reader(t)
	s := scenario.Start(t, "abba", "3")
	procs := treeOf(t, r, s.PID)
	if err := exec.Command("kill", "-STOP", strconv.Itoa(s.PID)).Run(); err != nil {
		t.Skip("no kill command")
	}
	eventually(t, "stopped", func() bool { return r.mustState(s.PID) == 'T' })
	for _, w := range waitsOf(t, r, procs) {
		if w.A.State != "T" || w.B.State != "T" {
			t.Errorf("thread %d: %+v %+v", w.TID, w.A, w.B)
		}
	}
}

func (r *Reader) mustState(pid int) byte {
	s, _ := readStat(r.base(pid, 0), make([]byte, statusFileSize))
	return s.State
}

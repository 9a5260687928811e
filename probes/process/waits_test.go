package process

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// waitsOf reads the waits of a scenario, by thread.
func waitsOf(t *testing.T, r *Reader, procs []evidence.Process) map[int]evidence.Wait {
	t.Helper()
	look, run := r.Waits(context.Background(), procs)
	if run.Status != evidence.OK || run.Name != evidence.ProbeWaits {
		t.Fatalf("run: %+v", run)
	}
	waits := map[int]evidence.Wait{}
	for _, w := range look.Waits {
		waits[w.TID] = w
	}
	return waits
}

// stood says whether a thread slept through the whole reading.
func stood(w evidence.Wait) bool {
	return w.Futex != nil && w.A.Slices != nil && w.B.Slices != nil && cmp.Equal(w.A, w.B)
}

func TestWaitsABBA(t *testing.T) {
	s := scenario.Start(t, "abba")
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	if len(waits) != 131 {
		t.Errorf("%d threads wait, want 131 (the main thread is in poll)", len(waits))
	}
	var held []evidence.Wait
	for _, w := range waits {
		if !stood(w) {
			t.Errorf("thread %d: A %+v and B %+v differ in a process that sleeps", w.TID, w.A, w.B)
		}
		f := w.Futex
		if f.Unread != "" || f.Word == nil {
			t.Errorf("thread %d: word not read: %q", w.TID, f.Unread)
		}
		if f.Mutex != nil {
			held = append(held, w)
			continue
		}
		if f.Caller != "pthread_cond_wait" || f.Timed || f.Command != 9 || !f.Private || f.Owner != nil {
			t.Errorf("idle thread %d: %+v", w.TID, f)
		}
	}
	if len(held) != 2 {
		t.Fatalf("%d threads wait for mutexes, want 2", len(held))
	}
	a, b := held[0], held[1]
	if a.Futex.Owner.TID != b.TID || b.Futex.Owner.TID != a.TID {
		t.Errorf("owners are not crossed: %d waits for %d, %d for %d", a.TID, a.Futex.Owner.TID, b.TID, b.Futex.Owner.TID)
	}
	for _, w := range held {
		want := evidence.MutexWords{Lock: 2, OwnerNSTID: w.Futex.Owner.TID, NUsers: 1, ListZero: true}
		if diff := cmp.Diff(want, *w.Futex.Mutex); diff != "" {
			t.Errorf("mutex (-want +got):\n%s", diff)
		}
		if w.Futex.Caller != "pthread_mutex_lock" {
			t.Errorf("caller %q, want pthread_mutex_lock", w.Futex.Caller)
		}
	}
}

func TestWaitsCycle(t *testing.T) {
	s := scenario.Start(t, "cycle", "7")
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	if got := circle(waits); got != 7 {
		t.Errorf("a circle of %d threads, want 7", got)
	}
}

// circle follows owners from each thread until one comes again, and returns
// the length of the longest circle of threads that stood; 0 for none.
func circle(waits map[int]evidence.Wait) int { return circleOf(waits, stood) }

func circleOf(waits map[int]evidence.Wait, counts func(evidence.Wait) bool) int {
	longest := 0
	for tid := range waits {
		seen := map[int]int{}
		for at, n := tid, 0; ; n++ {
			if from, ok := seen[at]; ok {
				longest = max(longest, n-from)
				break
			}
			seen[at] = n
			w, ok := waits[at]
			if !ok || !counts(w) {
				break
			}
			at = -1
			if f := w.Futex; f != nil && f.Owner != nil && f.Owner.TID != 0 {
				at = f.Owner.TID
			}
			if at < 0 {
				break
			}
		}
	}
	return longest
}

func TestWaitsJoin(t *testing.T) {
	s := scenario.Start(t, "join_cycle")
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	if got := circle(waits); got != 2 {
		t.Errorf("a circle of %d threads, want 2", got)
	}
	joins := 0
	for _, w := range waits {
		o := w.Futex.Owner
		if o == nil || o.Kind != evidence.KindThread {
			continue
		}
		joins++
		if o.TID == w.TID || waits[o.TID].Futex.Owner.TID != w.TID {
			t.Errorf("thread %d joins %d, which waits for %+v", w.TID, o.TID, waits[o.TID].Futex)
		}
		if o.Proof != evidence.ProofKernel && runtime.GOARCH == "amd64" {
			t.Errorf("join of %d is not verified", o.TID)
		}
	}
	if joins != 1 {
		t.Errorf("%d joins, want 1", joins)
	}
}

func TestWaitsRelock(t *testing.T) {
	s := scenario.Start(t, "relock")
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	if got := circle(waits); got != 1 || len(waits) != 1 {
		t.Errorf("%d waits, a circle of %d, want one thread waiting for itself", len(waits), got)
	}
}

// A healthy program that fights over locks must never show a circle: one
// reading of words does, now and then, but not of threads that stood.
func TestWaitsOrdered(t *testing.T) {
	samples := 100
	if testing.Short() {
		samples = 30
	}
	s := scenario.Start(t, "ordered")
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	circles, phantoms, mutexes, standing := 0, 0, 0, 0
	for range samples {
		waits := waitsOf(t, r, procs)
		if n := circle(waits); n > 0 {
			circles++
			t.Errorf("a circle of %d threads in a healthy program: %+v", n, waits)
		}
		if circleOf(waits, func(evidence.Wait) bool { return true }) > 0 {
			phantoms++
		}
		for _, w := range waits {
			if w.Futex.Mutex != nil {
				mutexes++
				if stood(w) {
					standing++
				}
			}
		}
	}
	t.Logf("%d samples: %d circles, %d if the second look did not count; %d waits for a mutex, %d of threads that stood",
		samples, circles, phantoms, mutexes, standing)
	if mutexes == 0 {
		t.Error("no wait for a mutex seen: the program proves nothing")
	}
}

// A circle can go through two processes.
func TestWaitsAcrossProcesses(t *testing.T) {
	s := scenario.Start(t, "pshared")
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	waits := waitsOf(t, r, procs)
	if got := circle(waits); got != 2 || len(procs) != 3 {
		t.Errorf("%d processes, a circle of %d threads, want 2", len(procs), got)
	}
	for _, w := range waits {
		if m := w.Futex.Mutex; m == nil || w.Futex.Owner.PID == w.PID || m.Kind != 0x80 || w.Futex.Private {
			t.Errorf("process %d: %+v", w.PID, w.Futex)
		}
	}
	// The other process is found when it is not in the tree, too.
	for _, w := range waitsOf(t, r, procs[1:2]) {
		if m := w.Futex.Mutex; m == nil || w.Futex.Owner.PID != procs[2].PID {
			t.Errorf("owner outside: %+v", w.Futex)
		}
	}
}

// A static executable has its C library inside, and its symbols in .symtab.
func TestWaitsStatic(t *testing.T) {
	s := scenario.StartCmd(t, nil, exec.Command(scenario.Build(t, "abba", "-static"), "1"))
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	waits := waitsOf(t, r, procs)
	if got := circle(waits); got != 2 || procs[0].Libc != "" {
		t.Errorf("a circle of %d, want 2; libc %q", got, procs[0].Libc)
	}
	for _, w := range waits {
		if f := w.Futex; f.Mutex != nil && !strings.HasSuffix(f.Caller, "pthread_mutex_lock") || f.Mutex == nil && !strings.HasSuffix(f.Caller, "pthread_cond_wait") {
			t.Errorf("caller %q of %+v", f.Caller, f)
		}
	}
}

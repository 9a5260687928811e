package process

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestPythonLockABBA(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "lock-abba")
		p, threads, waits := s.look()
		if p.Version != py.version || p.FreeThreaded != py.freeThreaded || (p.GIL == nil) != py.freeThreaded {
			t.Errorf("version %s, free-threaded %v, GIL %+v", p.Version, p.FreeThreaded, p.GIL)
		}
		first, second := threads["takes_first"], threads["takes_second"]
		for _, want := range []struct {
			th, other evidence.PythonThread
			has, lock string
			line      int
		}{
			{first, second, s.locks[0], s.locks[1], line(t, "def takes_first", "with second")},
			{second, first, s.locks[1], s.locks[0], line(t, "def takes_second", "with first")},
		} {
			if !slices.Equal(want.th.Inside, []string{want.has}) || want.th.Frames[0].Line != want.line {
				t.Errorf("inside %v, want %s; innermost %+v, want line %d", want.th.Inside, want.has, want.th.Frames[0], want.line)
			}
			got := s.lockOf(waits, want.th)
			if diff := cmp.Diff(evidence.PythonLock{Kind: evidence.PythonMutex, Object: want.lock, Inside: []int{want.other.TID}}, got); diff != "" {
				t.Errorf("lock (-want +got):\n%s", diff)
			}
		}
		outer := first.Frames[len(first.Frames)-1]
		if filepath.Base(outer.File) != "threading.py" || !strings.HasSuffix(outer.Function, "_bootstrap") || outer.Line == 0 {
			t.Errorf("outermost frame %+v", outer)
		}
		main := threads["<module>"]
		if main.TID != s.procs[0].PID || main.Frames[0].Line != line(t, "def until_input_ends", "os.read") {
			t.Errorf("main thread %+v", main)
		}
	})
}

func TestPythonRLockABBA(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "rlock-abba")
		_, threads, waits := s.look()
		first, second := threads["takes_first"], threads["takes_second"]
		for _, want := range []struct {
			th, other evidence.PythonThread
			has, lock string
		}{{first, second, s.locks[0], s.locks[1]}, {second, first, s.locks[1], s.locks[0]}} {
			got := s.lockOf(waits, want.th)
			if diff := cmp.Diff(evidence.PythonLock{Kind: evidence.PythonRLock, Object: want.lock, OwnerNSTID: want.other.TID, OwnerTID: want.other.TID, Count: 1}, got); diff != "" {
				t.Errorf("lock (-want +got):\n%s", diff)
			}
			if !slices.Equal(want.th.Inside, []string{want.has}) {
				t.Errorf("inside %v, want %s", want.th.Inside, want.has)
			}
		}
	})
}

// Blocks within blocks and in callers, with other handlers in between.
func TestPythonNestedBlocks(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "nested")
		outer, inner, wanted := s.locks[0], s.locks[1], s.locks[2]
		_, threads, waits := s.look()
		holder := threads["holds"]
		if !slices.Equal(holder.Inside, []string{inner, outer}) {
			t.Errorf("inside %v, want %s and %s", holder.Inside, inner, outer)
		}
		// The main thread took it by acquire(), which leaves no trace.
		if got := s.lockOf(waits, holder); got.Kind != evidence.PythonMutex || got.Object != wanted || len(got.Inside) != 0 {
			t.Errorf("holder waits for %+v", got)
		}
		if got := s.lockOf(waits, threads["wants_inner"]); got.Kind != evidence.PythonRLock || got.Object != inner || got.OwnerTID != holder.TID || got.Count != 2 {
			t.Errorf("waits for %+v, want the RLock %s, owned twice by %d", got, inner, holder.TID)
		}
	})
}

func TestPythonJoinCycle(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "join-cycle")
		_, threads, waits := s.look()
		first, second := threads["joins_second"], threads["joins_first"]
		for _, w := range [][2]evidence.PythonThread{{first, second}, {second, first}} {
			if got := s.lockOf(waits, w[0]); !isJoinOf(got, w[1]) {
				t.Errorf("join of %d waits for %+v", w[1].TID, got)
			}
		}
	})
}

// isJoinOf says whether a wait is a join of a thread.
func isJoinOf(k evidence.PythonLock, th evidence.PythonThread) bool {
	return k.Kind == evidence.PythonJoin && k.Object != "" && th.TID != 0 && k.OwnerTID == th.TID && k.OwnerNSTID == th.NSTID && len(k.Inside) == 0
}

// A thread joins another that waits for the RLock which the first one has.
func TestPythonRLockJoin(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "rlock-join")
		_, threads, waits := s.look()
		main, worker := threads["rlock_join"], threads["wants_rlock"]
		if got := s.lockOf(waits, main); main.TID != s.procs[0].PID || !isJoinOf(got, worker) {
			t.Errorf("the main thread %d waits for %+v, want a join of %d", main.TID, got, worker.TID)
		}
		want := evidence.PythonLock{Kind: evidence.PythonRLock, Object: s.locks[0], OwnerNSTID: main.TID, OwnerTID: main.TID, Count: 1}
		if diff := cmp.Diff(want, s.lockOf(waits, worker)); diff != "" {
			t.Errorf("the worker's lock (-want +got):\n%s", diff)
		}
	})
}

// The same, but the other one sleeps and waits for nobody.
func TestPythonJoinSleeps(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "join-sleeps")
		_, threads, waits := s.look()
		main, sleeper := threads["join_sleeps"], threads["sleeps"]
		if got := s.lockOf(waits, main); main.TID != s.procs[0].PID || !isJoinOf(got, sleeper) {
			t.Errorf("the main thread %d waits for %+v, want a join of %d", main.TID, got, sleeper.TID)
		}
		if w, ok := waits[sleeper.TID]; ok && w.Futex.Python != nil || len(sleeper.Inside) != 0 {
			t.Errorf("who sleeps waits for %+v inside %v", w.Futex.Python, sleeper.Inside)
		}
	})
}

// A Lock that its own waiter has: it is the one inside.
func TestPythonSelfLock(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "selflock")
		_, threads, waits := s.look()
		waiter := threads["takes_twice"]
		want := evidence.PythonLock{Kind: evidence.PythonMutex, Object: s.locks[0], Inside: []int{waiter.TID}}
		if diff := cmp.Diff(want, s.lockOf(waits, waiter)); diff != "" {
			t.Errorf("lock (-want +got):\n%s", diff)
		}
	})
}

// Who gives back the Lock of its block does not have it, and waits for another
// that leaves no trace.
func TestPythonHandoff(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "handoff")
		_, threads, waits := s.look()
		waiter := threads["gives_back"]
		want := evidence.PythonLock{Kind: evidence.PythonMutex, Object: s.locks[0]}
		if diff := cmp.Diff(want, s.lockOf(waits, waiter)); diff != "" || len(waiter.Inside) != 0 {
			t.Errorf("inside %v, lock (-want +got):\n%s", waiter.Inside, diff)
		}
	})
}

// An idle pool: nobody holds anything, though all are in `with` blocks.
func TestPythonQueueIdle(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "queue-idle", "20")
		p, _, waits := s.look()
		if len(p.Threads) != 22 {
			t.Errorf("%d threads, want 22", len(p.Threads))
		}
		workers := 0
		for _, th := range p.Threads {
			if len(th.Inside) != 0 {
				t.Errorf("thread %d is inside %v: %+v", th.TID, th.Inside, th.Frames)
			}
			if w, ok := waits[th.TID]; ok && w.Futex.Python != nil {
				workers++
				if k := w.Futex.Python; k.Kind != evidence.PythonMutex || len(k.Inside) != 0 {
					t.Errorf("worker waits for %+v", k)
				}
			}
		}
		if workers != 20 {
			t.Errorf("%d workers wait for a lock, want 20", workers)
		}
	})
}

func TestPythonConditionWait(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "condition-wait")
		_, threads, waits := s.look()
		waiter := threads["waits_for_condition"]
		if !slices.Equal(waiter.Inside, []string{s.locks[0]}) {
			t.Errorf("the waiter is inside %v, want only %s", waiter.Inside, s.locks[0])
		}
		if got := threads["waits_in_condition"].Inside; len(got) != 0 {
			t.Errorf("who waits in its condition is inside %v", got)
		}
		if got := s.lockOf(waits, threads["wants_other"]); got.Object != s.locks[0] || !slices.Equal(got.Inside, []int{waiter.TID}) {
			t.Errorf("%+v", got)
		}
	})
}

func TestPythonConditionHeld(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "condition-held")
		_, threads, waits := s.look()
		holder := threads["holds_condition"]
		if got := s.lockOf(waits, threads["wants_lock"]); got.Object != s.locks[0] || !slices.Equal(got.Inside, []int{holder.TID}) {
			t.Errorf("%+v, want %s with %d inside (%v)", got, s.locks[0], holder.TID, holder.Inside)
		}
	})
}

func TestPythonTimedAcquire(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "timed-acquire")
		_, threads, waits := s.look()
		w, ok := waits[threads["waits_timed"].TID]
		if !ok || !w.Futex.Timed || w.Futex.Python != nil {
			t.Errorf("%+v", w.Futex)
		}
	})
}

// Of the threads that slept through a reading, one at most is inside a Lock,
// and it is the one that has it.
func TestPythonInsideBusy(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "lock-busy", "8")
		outer, inner := s.locks[0], s.locks[1]
		seen := 0
		for range 100 {
			p, _, waits := s.look()
			var holders []int
			for _, th := range p.Threads {
				w, ok := waits[th.TID]
				if !ok || !stood(w) || w.Futex.Python == nil || w.Futex.Python.Kind == evidence.PythonGILWait {
					continue
				}
				switch k := w.Futex.Python; {
				case k.Object == inner && slices.Equal(th.Inside, []string{outer}):
					holders = append(holders, th.TID)
				case len(th.Inside) != 0 || k.Object != inner && k.Object != outer:
					t.Errorf("thread %d waits for %+v inside %v", th.TID, k, th.Inside)
				}
			}
			if len(holders) > 1 {
				t.Errorf("%v all hold one lock", holders)
			}
			if len(holders) == 1 {
				// What it has, the others wait for.
				for _, w := range waits {
					if stood(w) && w.Futex.Python != nil && w.Futex.Python.Object == outer && slices.Contains(w.Futex.Python.Inside, holders[0]) {
						seen++
					}
				}
			}
		}
		t.Logf("%d waits for a lock whose holder waits, too", seen)
		if seen == 0 {
			t.Error("no wait for a held lock seen: the program proves nothing")
		}
	})
}

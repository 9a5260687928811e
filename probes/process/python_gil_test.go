package process

import (
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestPythonGILHeldByNativeCall(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		if py.freeThreaded {
			t.Skip("this build has no GIL")
		}
		s := startPython(t, py, "gil-native")
		main := s.procs[0].PID
		eventually(t, "four threads seen waiting for the GIL that the main thread holds", func() bool {
			p, _, waits := s.look()
			if p.GIL == nil || !p.GIL.Locked || p.GIL.HolderTID != main {
				return false
			}
			waiters := 0
			for _, w := range waits {
				if k := w.Futex.Python; k != nil && w.Futex.Timed {
					if k.Kind != evidence.PythonGILWait || k.OwnerTID != main {
						t.Errorf("a timed wait for %+v", k)
					}
					waiters++
				}
			}
			// Now and then one is awake to look.
			return waiters == 4
		})
		p, threads, _ := s.look()
		again, _, _ := s.look()
		if p.GIL.SwitchNumber != again.GIL.SwitchNumber {
			t.Errorf("the GIL went round: %d, %d", p.GIL.SwitchNumber, again.GIL.SwitchNumber)
		}
		if got := threads["holds_the_gil"]; got.TID != main || got.Frames[0].Line != line(t, "def holds_the_gil", "pause") {
			t.Errorf("holder %+v", got)
		}
	})
}

func TestPythonGILAndMutex(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		if py.freeThreaded {
			t.Skip("this build has no GIL")
		}
		s := startPython(t, py, "gil-mutex")
		main := s.procs[0].PID
		eventually(t, "the thread with the mutex waits for the GIL and the main thread for the mutex", func() bool {
			_, threads, waits := s.look()
			other := threads["has_mutex_wants_gil"].TID
			w, ok := waits[other]
			if !ok || w.Futex.Python == nil || w.Futex.Python.Kind != evidence.PythonGILWait || w.Futex.Python.OwnerTID != main {
				return false
			}
			w, ok = waits[main]
			return ok && w.Futex.Owner != nil && w.Futex.Owner.TID == other
		})
	})
}

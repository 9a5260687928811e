package facts

import (
	"maps"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// GILHeld is an interpreter whose lock stayed with one thread.
type GILHeld struct {
	PID, HolderTID int
	// HeldMS is for how long that was seen.
	HeldMS float64
	// Waiting are the threads that want it.
	Waiting []int
	// Look and Process are the indexes into Snapshot.Waits and its Python.
	Look, Process int
}

// gilState is a GIL that was in the same hands in the last two looks: locked,
// by the same thread, without a change of hands in between.
type gilState struct {
	holder  int
	process int
}

// gilsOf finds them, by PID.
func gilsOf(s *evidence.Snapshot, look int) map[int]gilState {
	held := map[int]gilState{}
	for i := range s.Waits[look].Python {
		p := &s.Waits[look].Python[i]
		if p.GIL == nil || !p.GIL.Locked || p.GIL.HolderTID == 0 {
			continue
		}
		if look > 0 {
			before := gilIn(&s.Waits[look-1], p.PID)
			if !sameGIL(before, p.GIL) {
				continue
			}
		}
		held[p.PID] = gilState{p.GIL.HolderTID, i}
	}
	return held
}

func gilIn(l *evidence.WaitLook, pid int) *evidence.PythonGIL {
	for i := range l.Python {
		if l.Python[i].PID == pid {
			return l.Python[i].GIL
		}
	}
	return nil
}

func sameGIL(a, b *evidence.PythonGIL) bool {
	return a != nil && b != nil && a.Locked && b.Locked && a.HolderTID == b.HolderTID && a.SwitchNumber == b.SwitchNumber
}

// forGIL fills in a wait for the GIL. It has a time-out, 5 ms, and the thread
// runs each time to ask for the lock; still only the holder can give it up.
func (n *Waiter) forGIL(w *evidence.Wait, gils map[int]gilState) bool {
	if w.Futex == nil || w.Futex.Python == nil || w.Futex.Python.Kind != evidence.PythonGILWait {
		return false
	}
	gil, held := gils[w.PID]
	if !held || gil.holder == w.TID {
		return false
	}
	n.On, n.ForPID, n.ForTID = string(evidence.PythonGILWait), w.PID, gil.holder
	return true
}

// awakeForGIL adds the threads that waited for the GIL in an earlier look and
// were awake for a moment in the last one, to ask for it again. As it stayed with
// its holder in between they wait still: nobody who waits for it gives up.
func awakeForGIL(s *evidence.Snapshot, look int, gils map[int]gilState, waiters map[int]Waiter) {
	for i := range s.Waits[look].Waits {
		w := &s.Waits[look].Waits[i]
		n := Waiter{PID: w.PID, TID: w.TID, Look: look, Wait: i}
		if _, seen := waiters[w.TID]; !seen && w.A.Syscall != "" && w.A.Syscall == w.B.Syscall && n.forGIL(w, gils) {
			waiters[w.TID] = n
		}
	}
}

// heldGILs says how long each GIL was seen in the same hands, and who wants it.
func (g *WaitGraph) heldGILs(s *evidence.Snapshot, gils map[int]gilState) {
	last := len(s.Waits) - 1
	for pid, gil := range gils {
		h := GILHeld{PID: pid, HolderTID: gil.holder, Look: last, Process: gil.process}
		now := gilIn(&s.Waits[last], pid)
		waiting := map[int]bool{}
		for i := last; i >= 0 && sameGIL(gilIn(&s.Waits[i], pid), now); i-- {
			h.HeldMS = float64(s.Waits[last].At.Sub(s.Waits[i].At).Microseconds()) / 1000
			for j := range s.Waits[i].Waits {
				w := &s.Waits[i].Waits[j]
				if w.PID == pid && w.TID != gil.holder && w.Futex != nil && w.Futex.Python != nil && w.Futex.Python.Kind == evidence.PythonGILWait {
					waiting[w.TID] = true
				}
			}
		}
		h.Waiting = slices.Sorted(maps.Keys(waiting))
		g.GILs = append(g.GILs, h)
	}
	slices.SortFunc(g.GILs, func(a, b GILHeld) int { return a.PID - b.PID })
}

package facts

import (
	"slices"
	"sort"

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

// heldGILs says how long each GIL was seen in the same hands, and who wants it.
func (g *WaitGraph) heldGILs(s *evidence.Snapshot, gils map[int]gilState) {
	last := len(s.Waits) - 1
	for pid, gil := range gils {
		h := GILHeld{PID: pid, HolderTID: gil.holder, Look: last, Process: gil.process}
		now := gilIn(&s.Waits[last], pid)
		for i := last - 1; i >= 0 && sameGIL(gilIn(&s.Waits[i], pid), now); i-- {
			h.HeldMS = float64(s.Waits[last].At.Sub(s.Waits[i].At).Microseconds()) / 1000
		}
		for tid, n := range g.Waiters {
			if n.PID == pid && n.On == string(evidence.PythonGILWait) {
				h.Waiting = append(h.Waiting, tid)
			}
		}
		sort.Ints(h.Waiting)
		g.GILs = append(g.GILs, h)
	}
	slices.SortFunc(g.GILs, func(a, b GILHeld) int { return a.PID - b.PID })
}

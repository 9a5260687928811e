package facts

import (
	"slices"
	"sort"

	"github.com/whyhang/whyhang/probes/evidence"
)

// close finds the threads that nothing can wake: the greatest set of which
// each member can only be woken by members. It is found by taking away, again
// and again, every thread that one outside the set can wake; each thread and
// each wait is looked at once. What is left is true for ever if it was true at
// one instant, and that all members slept through both looks makes it so.
func (g *WaitGraph) close(look *evidence.WaitLook) {
	known := map[int]bool{} // threads that a surer grade has found dead
	worst := Sure
	for _, n := range g.Waiters {
		worst = max(worst, n.Proof)
	}
	for grade := Sure; grade <= worst; grade++ {
		set := g.closedAt(grade, look)
		g.ClosedAt[grade] = wholeProcesses(set, look)
		if grade == Sure {
			g.Closed = set
		}
		circles := g.circlesIn(set, grade)
		for _, c := range circles {
			if !known[c[0]] {
				g.Dead[grade].Circles = append(g.Dead[grade].Circles, c)
			}
			for _, tid := range c {
				known[tid] = true
			}
		}
		for _, o := range g.orphansIn(set, grade) {
			if !known[o[0]] {
				g.Dead[grade].Orphans = append(g.Dead[grade].Orphans, o)
			}
			for _, tid := range o {
				known[tid] = true
			}
		}
	}
}

// at is the wait as it counts at a grade; false if it can be ended by somebody
// unknown then.
func (g *WaitGraph) at(n Waiter, grade Proof) (Waiter, bool) {
	if n.Proof > grade {
		n.ForTID, n.ForPID, n.Procs, n.Lost = 0, 0, nil, ""
	}
	if n.named() {
		n.Anonymous = false
	}
	return n, n.named() || n.Anonymous
}

// closedAt is the fixed point at one grade.
func (g *WaitGraph) closedAt(grade Proof, look *evidence.WaitLook) map[int]bool {
	set := make(map[int]bool, len(g.Waiters))
	byThread := make(map[int][]int, len(g.Waiters)) // who waits for this thread
	byProcess := map[int][]int{}                    // who waits for any thread of this process
	members := map[int]int{}                        // threads in the set, by process
	for tid, w := range g.Waiters {
		n, ok := g.at(w, grade)
		if !ok {
			continue
		}
		set[tid] = true
		members[n.PID]++
		switch {
		case n.Lost != "":
		case n.ForTID != 0:
			byThread[n.ForTID] = append(byThread[n.ForTID], tid)
		case n.Anonymous:
			byProcess[n.PID] = append(byProcess[n.PID], tid)
		default:
			for _, pid := range n.Procs {
				byProcess[pid] = append(byProcess[pid], tid)
			}
		}
	}
	var drop []int
	out := func(tids []int) {
		for _, tid := range tids {
			if set[tid] {
				delete(set, tid)
				drop = append(drop, tid)
			}
		}
	}
	for tid, waiting := range byThread {
		if !set[tid] {
			out(waiting)
		}
	}
	open := map[int]bool{} // processes with a thread outside the set
	for pid, waiting := range byProcess {
		if !complete(look, pid, members[pid]) {
			open[pid] = true
			out(waiting)
		}
	}
	for len(drop) > 0 {
		tid := drop[len(drop)-1]
		drop = drop[:len(drop)-1]
		out(byThread[tid])
		if pid := g.Waiters[tid].PID; !open[pid] {
			open[pid] = true
			out(byProcess[pid])
		}
	}
	return set
}

// complete: the waits hold every thread of the process.
func complete(look *evidence.WaitLook, pid, members int) bool {
	for _, p := range look.Processes {
		if p.PID == pid {
			return members > 0 && p.Threads == members && p.ThreadsAfter == members
		}
	}
	return false
}

// wholeProcesses are those of which every thread is in the set.
func wholeProcesses(set map[int]bool, look *evidence.WaitLook) []int {
	members := map[int]int{}
	for i := range look.Waits {
		if w := &look.Waits[i]; set[w.TID] {
			members[w.PID]++
		}
	}
	var pids []int
	for pid, n := range members {
		if complete(look, pid, n) {
			pids = append(pids, pid)
		}
	}
	sort.Ints(pids)
	return pids
}

// orphansIn are the waits in the set for locks that nobody can release,
// grouped by lock.
func (g *WaitGraph) orphansIn(set map[int]bool, grade Proof) [][]int {
	type lock struct {
		pid  int
		addr string
	}
	groups := map[lock][]int{}
	for tid := range set {
		if n, _ := g.at(g.Waiters[tid], grade); n.Lost != "" {
			l := lock{n.PID, n.Addr}
			groups[l] = append(groups[l], tid)
		}
	}
	var list [][]int
	for _, tids := range groups {
		sort.Ints(tids)
		list = append(list, tids)
	}
	slices.SortFunc(list, func(a, b []int) int { return a[0] - b[0] })
	return list
}

package deadlocked

import (
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// A circle of sleepers cannot end by itself, but some waits can be ended by more
// than what they wait for: by a signal with a handler, by pthread_cancel, by a
// thread that unlocks what it does not own, by somebody who kills the child. This
// file says how much a wait is worth in the light of that. Only locks that are
// taken by native code have no such way out: pthread_mutex_lock goes on after a
// signal and is no point of cancellation.

// circleStrength is that of the weakest wait of the circle.
func circleStrength(c *rule.Case, grade facts.Proof, circle []int) rule.Strength {
	g := &c.WaitGraph
	s := strength(g, grade)
	joins := true
	for _, tid := range circle {
		joins = joins && g.Waiters[tid].On == string(evidence.KindThread)
	}
	for _, tid := range circle {
		n := g.Waiters[tid]
		switch {
		case joins, n.ForTID == tid:
			s = min(s, ifNobodyIsLeft(c, grade, n.PID))
		default:
			s = min(s, firmness(c, grade, n))
		}
	}
	return s
}

// firmness is the most that a wait for another is worth.
func firmness(c *rule.Case, grade facts.Proof, n facts.Waiter) rule.Strength {
	closed := slices.Contains(c.WaitGraph.ClosedAt[grade], n.PID)
	switch n.On {
	case string(evidence.KindMutex), string(evidence.KindRobustMutex), string(evidence.KindPIMutex), string(evidence.KindRWLock),
		string(evidence.KindMuslMutex), string(evidence.PythonGILWait):
		return rule.Proved
	case string(evidence.KindThread):
		if !closed {
			return rule.Strong // it could be cancelled
		}
		return rule.Proved
	case string(evidence.PythonRLock), string(evidence.PythonJoin):
		// CPython runs signal handlers in the main thread alone, and they may
		// raise; elsewhere it goes on waiting.
		if n.TID == n.PID {
			return bySignals(c, n.PID)
		}
		return rule.Proved
	case string(evidence.PythonMutex):
		// Any thread may release a plain Lock.
		return min(ifNobodyIsLeft(c, grade, n.PID), bySignals(c, n.PID))
	case string(evidence.BlockPipeRead):
		// A daemon that waits for commands in a FIFO has it open for writing itself,
		// and whoever gives them opens it by its name.
		if strings.HasPrefix(n.Addr, "/") && slices.Contains(n.Procs, n.PID) {
			return rule.Likely
		}
	case string(evidence.BlockChild):
		if !closed {
			return rule.Likely // another thread may kill the child: watchdogs do
		}
	}
	return bySignals(c, n.PID)
}

// ifNobodyIsLeft is for what a thread of the process outside the dead could end.
// If every thread belongs to them, nobody can. Else it is strong only if nobody
// ran at all for seconds, and the server is not one that may just be idle.
func ifNobodyIsLeft(c *rule.Case, grade facts.Proof, pid int) rule.Strength {
	switch {
	case slices.Contains(c.WaitGraph.ClosedAt[grade], pid):
		if bySignals(c, pid) < rule.Strong {
			return rule.Likely // a handler may do it
		}
		return rule.Proved
	case c.Moves.WindowMS >= restMS && c.Moves.ThreadsLooked > 0 && c.Moves.ThreadsRan == 0 && !c.Door.Listens:
		return rule.Strong
	}
	return rule.Likely
}

// restMS is the shortest time of complete rest that says something.
const restMS = 5000

// orphanStrength is that of a wait for a lock without an owner. The thread that
// forks takes its locks along under a new ID, and is the first thread of the
// child: if that one lives, the lock may be its own.
func orphanStrength(c *rule.Case, grade facts.Proof, n facts.Waiter) rule.Strength {
	g := &c.WaitGraph
	s := strength(g, grade)
	fromParent := n.Lost == facts.LostForked || ownerID(c, n) != 0 && ownerID(c, n) < n.PID
	if fromParent && !g.Closed[n.PID] {
		return min(s, rule.Likely)
	}
	return min(s, ifNobodyIsLeft(c, grade, n.PID))
}

// bySignals is how much a wait is worth that a signal can end. Signals of events
// (SIGCHLD, SIGALRM, SIGUSR1 …) come by themselves: a handler for one of them is
// often the very thing that is to end the wait. Those by which a person asks
// (SIGINT, SIGTERM …) do not, but a program may send them to itself.
func bySignals(c *rule.Case, pid int) rule.Strength {
	last := len(c.Waits) - 1
	i := processIn(c, last, pid)
	if i < 0 {
		return rule.Likely
	}
	s := rule.Proved
	for _, signal := range c.Waits[last].Processes[i].Caught {
		switch {
		case neverByItself[signal]:
		case byPeople[signal]:
			s = min(s, rule.Strong)
		default:
			return rule.Likely
		}
	}
	return s
}

// neverByItself are signals that only a running thread brings on itself (faults,
// SIGABRT, SIGPIPE), those of terminals, and 32 and 33, which glibc handles for
// its own (signal(7), nptl(7)).
var neverByItself = map[int]bool{4: true, 5: true, 6: true, 7: true, 8: true, 11: true, 13: true, 18: true, 20: true, 21: true, 22: true, 28: true, 31: true, 32: true, 33: true}

// byPeople are SIGHUP, SIGINT, SIGQUIT and SIGTERM.
var byPeople = map[int]bool{1: true, 2: true, 3: true, 15: true}

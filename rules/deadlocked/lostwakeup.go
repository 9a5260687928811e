package deadlocked

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// LostWakeup is a server of which nobody can wake anybody.
var LostWakeup = rule.Rule{
	ID:      "lost-wakeup",
	Verdict: rule.Deadlocked,
	Title:   "Every thread sleeps and only others of the same set could wake it",
	Doc: `Looks for a process that is meant to serve (it listens, is a rank of an engine,
or its log says that it began to load) in which every single thread sleeps
without a time-out in a wait that only other threads of the same set can end.
No thread waits for the network, a timer, a file or a signal, so nothing that
happens outside can reach the process. A condition variable was waited for after
its last signal, or the one thread that would have given it has ended.

No lock names a guilty thread here, so this is never more than "strong": a
program may sleep like this on purpose until a signal handler wakes it, which
cannot be seen from outside. A healthy idle server is never in this state: one
thread of it waits for connections.

What would make it wrong: a signal handler or an asynchronous timer that posts a
semaphore.

Sources: futex(2): a private futex can be woken by threads of the same memory
only; pthread_cond_wait(3).`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords, evidence.NeedMovement},
	Suppresses: []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word"},
	Eval:       evalLostWakeup,
}

// lostAfterMS is how long nothing may have moved.
const lostAfterMS = 3000

func evalLostWakeup(c *rule.Case) []rule.Finding {
	g := &c.WaitGraph
	if g.Looks < 2 || g.Unclocked || g.Unread > 0 || len(c.Frames) == 0 || c.Frames[len(c.Frames)-1].SinceMS < lostAfterMS {
		return nil
	}
	if facts.Furthest(&c.Moves) != nil || facts.Furthest(&c.MovesAsked) != nil {
		return nil
	}
	for _, d := range g.Dead {
		if len(d.Circles)+len(d.Orphans) > 0 {
			return nil
		}
	}
	for _, pid := range g.ClosedAt[facts.Sure] {
		meant := meantToServe(c, pid)
		if meant == "" || bySignals(c, pid) < rule.Strong {
			continue // a handler may be what it waits for
		}
		var first facts.Waiter
		threads := 0
		for tid := range g.Closed {
			if n := g.Waiters[tid]; n.PID == pid {
				threads++
				if first.TID == 0 || n.TID < first.TID {
					first = n
				}
			}
		}
		if threads == 1 && bySignals(c, pid) < rule.Proved {
			continue // it may just wait to be told to end
		}
		return []rule.Finding{{
			Cause: rule.LostWakeup, Strength: rule.Strong, Victims: threads - 1,
			Says: fmt.Sprintf("All %d threads of %s, which %s, sleep without a time-out, and only each other could wake them: nothing that happens outside can reach it.",
				threads, c.Process(pid), meant),
			Culprits: []rule.Culprit{culprit(c, first)},
			Cites: append(citeWait(c, first),
				c.Cite("number of threads of the process, all of them asleep", "waits", first.Look, "processes", processIn(c, first.Look, pid), "threads")),
			FlipsIf: []string{"a signal handler of the process wakes a thread", "any thread runs again (its schedstat changes)"},
			Next:    restart(c, pid),
		}}
	}
	return nil
}

func processIn(c *rule.Case, look, pid int) int {
	for i, p := range c.Waits[look].Processes {
		if p.PID == pid {
			return i
		}
	}
	return -1
}

// living counts the processes of the tree that live.
func living(c *rule.Case) int {
	n := 0
	for _, alive := range c.Tree.Alive {
		if alive {
			n++
		}
	}
	return n
}

// meantToServe says why a process is no mere bystander; "" if it may be one.
func meantToServe(c *rule.Case, pid int) string {
	// A listener that other processes of the tree have as well is theirs to
	// serve: the parent of a pre-fork server sleeps.
	if c.Sockets != nil && len(c.WaitGraph.ClosedAt[facts.Sure]) >= living(c) {
		for i := range c.Sockets.Listeners {
			if c.Sockets.Listeners[i].PID == pid {
				return "listens on " + c.Sockets.Listeners[i].Address
			}
		}
	}
	if c.Engine.Known == nil {
		return ""
	}
	for _, h := range c.Heads {
		for _, have := range h.Living {
			if have == pid {
				return fmt.Sprintf("is a %s of %s", h.Role, c.Engine.Known.Name)
			}
		}
	}
	if pid == c.Target.PID && c.Phases.Current != "" {
		return fmt.Sprintf("began to load (its log was last in the phase %s)", c.Phases.Current)
	}
	return ""
}

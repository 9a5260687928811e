package deadlocked

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// LockCycle is the classic deadlock, proved.
var LockCycle = rule.Rule{
	ID:      "lock-cycle",
	Verdict: rule.Deadlocked,
	Title:   "Threads wait for each other's locks in a circle",
	Doc: `Looks for threads that sleep without a time-out in pthread_mutex_lock or
pthread_join, and follows each to the one thread that can wake it: the owner in
the mutex, or the thread that is joined. If the chain comes back to its start,
none of these threads can ever run again.

What makes it a proof: every thread's system call and scheduler counters
(/proc/PID/task/TID/syscall and schedstat) are read before and after the lock
words. Where both are equal the thread slept in that one call all the time, so
the whole circle was true at one instant; and a circle of sleepers cannot end by
itself. It must be seen twice, some 100 ms apart, in the very same waits. One
look alone shows circles that do not exist whenever locks are handed over.

A circle is proved only if a return address on each thread's stack shows the
lock function; memory that merely looks like a mutex gives "likely", which is
never enough for "deadlocked". A kernel without schedstat gives "likely" too.

What would make it wrong: a mutex implementation that lays out its words as
glibc does and lies in them; a debugger that wakes a thread by hand.

Sources: glibc nptl (pthread_mutex_lock.c, lowlevellock.c, struct
__pthread_mutex_s), futex(2), proc_pid_syscall(5), kernel
Documentation/scheduler/sched-stats.rst.`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: []rule.ID{"no-movement", "no-answer", "ready-by-its-word"},
	Eval:       evalLockCycle,
	Against:    againstLockCycle,
}

// minSpanMS is how far apart two looks must be to count as two.
const minSpanMS = 50

func evalLockCycle(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	g := &c.WaitGraph
	for _, cycle := range g.Cycles {
		f := rule.Finding{
			Cause:    rule.LockCycle,
			Strength: cycleStrength(g, cycle),
			Victims:  len(g.Behind(cycle)),
			Says:     cycleSentence(c, cycle),
			Next:     cycleNext(c, cycle),
		}
		for _, tid := range cycle {
			e := g.Edges[tid]
			f.Culprits = append(f.Culprits, rule.Culprit{PID: e.PID, TID: tid, Name: threadName(c, e.PID, tid), Where: waitsFor(c, e)})
			f.Cites = append(f.Cites, citeEdge(c, e)...)
		}
		f.FlipsIf = []string{"any thread of the circle runs again (its schedstat changes)"}
		found = append(found, f)
	}
	return found
}

// cycleStrength is proved, unless something is missing from the proof.
func cycleStrength(g *facts.WaitGraph, cycle []int) rule.Strength {
	if g.Looks < 2 || g.SpanMS < minSpanMS || g.Unclocked {
		return rule.Likely
	}
	for _, tid := range cycle {
		if !g.Edges[tid].Code {
			return rule.Likely
		}
	}
	return rule.Proved
}

// cycleSentence says it in jstack's form. A long circle is cut in its middle.
func cycleSentence(c *rule.Case, cycle []int) string {
	const most = 6
	var parts []string
	for i, tid := range cycle {
		if len(cycle) > most && i == most-1 {
			parts = append(parts, fmt.Sprintf("… and so on through %d threads in all, until the last waits for %s", len(cycle), thread(c, c.WaitGraph.Edges[cycle[0]].PID, cycle[0])))
			break
		}
		e := c.WaitGraph.Edges[tid]
		parts = append(parts, thread(c, e.PID, tid)+" "+waitsFor(c, e))
	}
	end := ". None of them can ever run again."
	switch len(cycle) {
	case 1:
		end = ". It can never run again."
	case 2:
		end = ". Neither can ever run again."
	}
	says := strings.Join(parts, "; ") + end
	return strings.ToUpper(says[:1]) + says[1:]
}

// waitsFor is the predicate of the sentence: "waits for mutex 0x…, held by …".
func waitsFor(c *rule.Case, e facts.Edge) string {
	if e.Kind == facts.WaitJoin {
		return fmt.Sprintf("waits for %s to end", thread(c, e.ForPID, e.ForTID))
	}
	if e.ForTID == e.TID {
		return fmt.Sprintf("waits for %s %s, held by itself", e.Kind, e.Addr)
	}
	return fmt.Sprintf("waits for %s %s, held by %s", e.Kind, e.Addr, thread(c, e.ForPID, e.ForTID))
}

func thread(c *rule.Case, pid, tid int) string {
	if name := threadName(c, pid, tid); name != "" {
		return fmt.Sprintf("thread %d %q", tid, name)
	}
	return fmt.Sprintf("thread %d", tid)
}

func threadName(c *rule.Case, pid, tid int) string {
	_, _, t := findThread(c, pid, tid)
	if t == nil {
		return ""
	}
	return t.Name
}

// findThread is a thread in the last frame that looked at it.
func findThread(c *rule.Case, pid, tid int) (frame, proc int, t *evidence.ThreadFrame) {
	for n := len(c.Frames) - 1; n >= 0; n-- {
		j := facts.ProcessAt(&c.Frames[n], pid)
		if j < 0 {
			continue
		}
		for k := range c.Frames[n].Processes[j].Threads {
			if c.Frames[n].Processes[j].Threads[k].TID == tid {
				return n, j, &c.Frames[n].Processes[j].Threads[k]
			}
		}
	}
	return -1, -1, nil
}

// citeEdge cites the wait and the word that names the owner.
func citeEdge(c *rule.Case, e facts.Edge) []rule.Cite {
	w := &c.Waits[e.Look].Waits[e.Wait]
	at := []any{"waits", e.Look, "waits", e.Wait}
	cites := []rule.Cite{c.Cite(fmt.Sprintf("thread %d sleeps in this call, the same before and after", e.TID), append(at, "b", "syscall")...)}
	if w.B.RunNS != nil {
		cites = append(cites, c.Cite(fmt.Sprintf("thread %d did not run between the looks: its CPU time in ns is unchanged", e.TID), append(at, "b", "run_ns")...))
	}
	if e.Kind == facts.WaitMutex {
		return append(cites, c.Cite(fmt.Sprintf("the mutex at %s names this owner", e.Addr), append(at, "futex", "owner", "nstid")...))
	}
	return append(cites, c.Cite("the thread that is waited for", append(at, "futex", "owner", "nstid")...))
}

func cycleNext(c *rule.Case, cycle []int) []rule.Step {
	pid := c.WaitGraph.Edges[cycle[0]].PID
	return []rule.Step{
		{Do: "Keep the stacks for a bug report before you restart (stops the process for a moment)", Risk: rule.RiskLow,
			Command: fmt.Sprintf("gdb -p %d -batch -ex 'thread apply all bt' > whyhang-%d.stacks", pid, pid)},
		{Do: "Restart the server: it cannot recover by itself", Risk: rule.RiskHigh,
			Command: fmt.Sprintf("kill %d", c.Target.PID)},
	}
}

func againstLockCycle(c *rule.Case) *rule.Because {
	last := len(c.Waits) - 1
	n := len(c.Waits[last].Waits)
	if n == 0 {
		return &rule.Because{Says: "no thread waits on a futex"}
	}
	says := fmt.Sprintf("%d threads wait on futexes and no chain of lock owners comes back to its start", n)
	if len(c.WaitGraph.Edges) == 0 {
		says = fmt.Sprintf("%d threads wait on futexes, none for a lock that a sleeping thread holds", n)
	}
	return &rule.Because{Says: says, Cites: []rule.Cite{
		c.Cite("one of them", "waits", last, "waits", 0, "b", "syscall"),
	}}
}

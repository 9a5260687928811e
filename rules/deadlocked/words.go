package deadlocked

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// waitsFor is the predicate of a sentence about one wait, in the form of
// jstack: "waits for mutex 0x…, held by thread 12".
func waitsFor(c *rule.Case, n facts.Waiter) string {
	switch on := n.On; {
	case n.Lost == facts.LostForked:
		return fmt.Sprintf("waits for %s %s, held by %s of %s when this process was forked from it", on, n.Addr, c.Thread(n.ForPID, n.ForTID), c.Process(n.ForPID))
	case n.Lost == facts.LostEnded && ownerID(c, n) == 0:
		return fmt.Sprintf("waits for Python %s %s, whose owner is no thread of this process: it has ended, or was a thread of the parent when the process was forked", on, n.Addr)
	case n.Lost == facts.LostEnded:
		return fmt.Sprintf("waits for %s %s, whose owner, thread %d, has ended without releasing it", on, n.Addr, ownerID(c, n))
	case on == string(evidence.KindThread), on == string(evidence.PythonJoin):
		return fmt.Sprintf("waits for %s to end", c.Thread(n.ForPID, n.ForTID))
	case on == string(evidence.PythonGILWait):
		return "waits for the GIL, held by " + c.Thread(n.ForPID, n.ForTID)
	case n.Proof == facts.Inferred && n.ForTID != 0:
		return fmt.Sprintf("waits for Python %s %s, in whose `with` block %s is", on, n.Addr, c.Thread(n.ForPID, n.ForTID))
	case n.ForTID == n.TID:
		return fmt.Sprintf("waits for %s %s, held by itself", lockName(on), n.Addr)
	case n.ForTID != 0:
		holder := c.Thread(n.ForPID, n.ForTID)
		if n.ForPID != n.PID {
			holder += " of " + c.Process(n.ForPID)
		}
		return fmt.Sprintf("waits for %s %s, held by %s", lockName(on), n.Addr, holder)
	}
	return waitsForProcesses(c, n)
}

// waitsForProcesses is the predicate for a wait that any thread of some
// processes can end.
func waitsForProcesses(c *rule.Case, n facts.Waiter) string {
	at := n.Addr
	if b := c.Waits[n.Look].Waits[n.Wait].Blocked; b != nil && b.FD >= 0 {
		at = fmt.Sprintf("%s (fd %d)", n.Addr, b.FD)
	}
	who := processes(c, n)
	switch evidence.BlockKind(n.On) {
	case evidence.BlockPipeRead:
		return fmt.Sprintf("reads from the empty %s, whose other end %s", at, holds(who))
	case evidence.BlockPipeWrite:
		return fmt.Sprintf("writes to the full %s, whose other end %s", at, holds(who))
	case evidence.BlockSocketRead:
		return fmt.Sprintf("reads from the empty %s, whose other end %s", at, holds(who))
	case evidence.BlockSocketWrite:
		return fmt.Sprintf("writes to the full %s, whose other end %s", at, holds(who))
	case evidence.BlockChild:
		return fmt.Sprintf("waits for its child %s to end", who)
	case evidence.BlockFlock:
		return fmt.Sprintf("waits for the flock on %s, held by %s", at, who)
	case evidence.BlockPosixLock, evidence.BlockOFDLock:
		return fmt.Sprintf("waits for the file lock on %s, held by %s", at, who)
	case "":
		return "waits for any other thread of its process to wake it"
	}
	return fmt.Sprintf("waits in %s for %s", n.On, who)
}

func holds(who string) string {
	if who == "" {
		return "nobody holds"
	}
	return "only " + who + " holds"
}

func processes(c *rule.Case, n facts.Waiter) string {
	const most = 3
	var parts []string
	for i, pid := range n.Procs {
		switch {
		case pid == n.PID && n.On == string(evidence.BlockChild):
		case i == most:
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", len(n.Procs)-most)
		case pid == n.PID:
			parts = append(parts, "its own process")
		default:
			parts = append(parts, c.Process(pid))
		}
	}
	return strings.Join(parts, ", ")
}

func lockName(on string) string {
	if on == string(evidence.PythonRLock) || on == string(evidence.PythonMutex) {
		return "Python " + on
	}
	return on
}

// ownerID is the owner as the lock's memory names it.
func ownerID(c *rule.Case, n facts.Waiter) int {
	if f := c.Waits[n.Look].Waits[n.Wait].Futex; f != nil && f.Owner != nil {
		return f.Owner.NSTID
	}
	return 0
}

// who is a thread with the place in its program.
func who(c *rule.Case, pid, tid int) string {
	s := c.Thread(pid, tid)
	if at := c.Place(pid, tid); at != "" {
		s += " (" + at + ")"
	}
	return s
}

// culprit is a thread with what it waits for, since when, and where in its
// program.
func culprit(c *rule.Case, n facts.Waiter) rule.Culprit {
	where := waitsFor(c, n)
	if at := c.Place(n.PID, n.TID); at != "" {
		where += ", " + at
	} else if at := c.Address(n.TID); at != "" {
		where += ", called from " + at
	}
	if ms := c.Waits[n.Look].Waits[n.Wait].AsleepMS; ms != nil && *ms >= 1000 {
		where += ", asleep for " + facts.Lasting(*ms/1000)
	}
	return rule.Culprit{PID: n.PID, TID: n.TID, Name: c.ThreadName(n.PID, n.TID), Where: where}
}

// citeWait cites a wait, that the thread did not run, and who can end it.
func citeWait(c *rule.Case, n facts.Waiter) []rule.Cite {
	w := &c.Waits[n.Look].Waits[n.Wait]
	at := []any{"waits", n.Look, "waits", n.Wait}
	to := func(path ...any) []any { return append(append([]any(nil), at...), path...) }
	cites := []rule.Cite{c.Cite(fmt.Sprintf("thread %d sleeps in this call, the same before and after", n.TID), to("b", "syscall")...)}
	if n.On == string(evidence.PythonGILWait) {
		cites[0].Says = fmt.Sprintf("thread %d asks for the GIL every 5 ms in this call", n.TID)
	} else if w.B.RunNS != nil {
		cites = append(cites, c.Cite(fmt.Sprintf("thread %d did not run between the looks: its CPU time in ns is unchanged", n.TID), to("b", "run_ns")...))
	}
	switch {
	case w.Futex != nil && w.Futex.Owner != nil:
		says := fmt.Sprintf("the %s at %s names this owner", n.On, n.Addr)
		if n.On == string(evidence.KindThread) {
			says = "the thread that is waited for"
		}
		return append(cites, c.Cite(says, to("futex", "owner", "nstid")...))
	case w.Futex != nil && w.Futex.Python != nil && n.Lost != "":
		return append(cites, c.Cite("the lock names an owner that is no thread of the process", to("futex", "python", "owner_gone")...))
	case w.Futex != nil && w.Futex.Python != nil && n.Proof == facts.Inferred:
		return append(cites, c.Cite("the thread inside the lock's `with` block", to("futex", "python", "inside", 0)...))
	case w.Futex != nil && w.Futex.Python != nil:
		return append(cites, c.Cite(fmt.Sprintf("the %s names this owner", n.On), to("futex", "python", "owner_tid")...))
	case w.Blocked != nil && len(w.Blocked.Wakers) > 0:
		return append(cites, c.Cite("the process that can end it", to("blocked", "wakers", 0, "pid")...))
	}
	return cites
}

// restart are the steps for a server that cannot recover.
func restart(c *rule.Case, pid int) []rule.Step {
	stop := fmt.Sprintf("kill %d", c.Target.PID)
	if c.Target.PID == 1 {
		stop = "" // never tell anybody to kill init
	}
	return []rule.Step{
		{Do: "Keep the stacks for a bug report before you restart (stops the process for a moment)", Risk: rule.RiskLow,
			Command: fmt.Sprintf("gdb -p %d -batch -ex 'thread apply all bt' > whyhang-%d.stacks", pid, pid)},
		{Do: "Restart the server: it cannot recover by itself", Risk: rule.RiskHigh,
			Command: stop},
	}
}

// strength is that of a finding at a grade of the graph.
func strength(g *facts.WaitGraph, grade facts.Proof) rule.Strength {
	if g.Looks < 2 || g.SpanMS < minSpanMS || g.Unclocked {
		return rule.Likely
	}
	switch grade {
	case facts.Sure:
		return rule.Proved
	case facts.Inferred:
		return rule.Strong
	}
	return rule.Likely
}

// minSpanMS is how far apart two looks must be to count as two.
const minSpanMS = 50

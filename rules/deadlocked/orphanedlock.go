package deadlocked

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// OrphanedLock is a lock that nobody can release any more.
var OrphanedLock = rule.Rule{
	ID:      "orphaned-lock",
	Verdict: rule.Deadlocked,
	Title:   "A lock is held by a thread that no longer exists",
	Doc: `Looks for threads that sleep without a time-out for a lock whose owner cannot
release it: the owning thread has ended (killed, cancelled, or returned with the
lock held), or the lock was held by another thread while the process was forked,
so that the child has a copy of a locked lock and no thread that owns it
(fork-lock). Python's multiprocessing with its "fork" start method does this to
libraries with threads of their own.

It is a proof if nobody else in the process could release the lock: the waiter
slept through both looks, the lock named the same owner in both, no thread of
that ID lived where the owner would have to, and every thread of the process is
dead as well. With living threads beside it is strong if none of them ran for
seconds, and likely otherwise; and of a lock that was held at a fork only likely
while the child's first thread lives, which may be the owner under a new ID. A
robust mutex is passed on by the kernel when its owner dies, and is never taken
for one.

What would make it wrong: memory that looks like a mutex; therefore a return
address of the lock function must stand on the stack for anything above
"likely". A thread other than the owner that unlocks the mutex, which POSIX
calls undefined.

Sources: glibc nptl (pthread_mutex_unlock.c), fork(2), pthread_atfork(3).`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: suppressed,
	Eval:       evalOrphanedLock,
}

func evalOrphanedLock(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	g := &c.WaitGraph
	for grade := range g.Dead {
		for _, waiting := range g.Dead[grade].Orphans {
			n := g.Waiters[waiting[0]]
			f := rule.Finding{
				Cause:    rule.OrphanedLock,
				Strength: orphanStrength(c, facts.Proof(grade), n),
				Victims:  len(waiting) - 1 + len(g.Behind(waiting)),
				Culprits: []rule.Culprit{culprit(c, n)},
				Cites:    citeWait(c, n),
				FlipsIf:  []string{"the waiting thread runs again (its schedstat changes)"},
				Next:     restart(c, n.PID),
			}
			name := who(c, n.PID, n.TID)
			if n.PID != c.Target.PID {
				name += " of " + c.Process(n.PID)
			}
			end := "It can never run again."
			if f.Strength < rule.Proved {
				end = "It does not move again by itself."
			}
			f.Says = fmt.Sprintf("%s %s. %s", rule.Capital(name), waitsFor(c, n), end)
			if n.Lost == facts.LostForked {
				f.Cause = rule.ForkLock
				f.Next = append(f.Next, rule.Step{Do: "Start workers with spawn or forkserver instead of fork, or fork before other threads start", Risk: rule.RiskNone})
			}
			found = append(found, f)
		}
	}
	return found
}

package deadlocked

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// GILCycle is a circle that goes through the lock of a Python interpreter.
var GILCycle = rule.Rule{
	ID:      "gil-cycle",
	Verdict: rule.Deadlocked,
	Title:   "The GIL and another lock are held crosswise",
	Doc: `Looks for a thread that holds CPython's global interpreter lock and waits for
something that only a thread waiting for the GIL can give: native code that
takes a mutex without having released the GIL, while the mutex's owner wants to
run Python.

A thread that waits for the GIL wakes up every 5 ms to ask for it, so it does
not sleep through the looks. The lock's own words take the place of that proof:
it was locked, by the same thread, and its count of changes of hands was the
same in both looks, while the holder itself slept in one call all the time.

What would make it wrong: what would make lock-cycle wrong.

Sources: CPython Python/ceval_gil.c (struct _gil_runtime_state, take_gil).`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: suppressed,
	Eval:       func(c *rule.Case) []rule.Finding { return circles(c, rule.GILHeld, throughGIL) },
}

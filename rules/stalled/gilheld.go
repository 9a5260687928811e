package stalled

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// GILHeld is an interpreter that one call brings to a stop.
var GILHeld = rule.Rule{
	ID:      "gil-held",
	Verdict: rule.Stalled,
	Title:   "One call holds the GIL and every other Python thread waits",
	Doc: `Looks for a CPython interpreter whose global lock stayed with the same thread for
seconds while others asked for it: native code was entered without releasing
the GIL and waits for a file, a socket, a lock or the driver. No other line of
Python runs until that call returns, so a server with an open port does not
answer.

This is no deadlock: the call may still return. If it waits for something that
only a thread waiting for the GIL can give, rule gil-cycle says so.

The same holder and the same number of changes of hands in all looks are
required: in a busy program the GIL goes round hundreds of times a second, and
any single look shows somebody holding it and others waiting.

What would make it wrong: a library that asks for the GIL and gives it back in
between without a change of hands, within one long computation; the wait is then
real and its end near.

Sources: CPython Python/ceval_gil.c (switch_number, last_holder).`,
	Needs: []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Eval:  evalGILHeld,
}

// gilHeldMS is how long one thread must keep the GIL: the interpreter asks for
// it back every 5 ms.
const gilHeldMS = 2000

func evalGILHeld(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	for _, h := range c.WaitGraph.GILs {
		if h.HeldMS < gilHeldMS || len(h.Waiting) == 0 {
			continue
		}
		does, still := holderDoes(c, h)
		f := rule.Finding{Cause: rule.GILHeld, Strength: rule.Likely, Victims: len(h.Waiting),
			Says: fmt.Sprintf("%s of %s holds the GIL for more than %.0f s, %s; %d other threads wait to run Python.",
				rule.Capital(c.Thread(h.PID, h.HolderTID)), c.Process(h.PID), h.HeldMS/1000, does, len(h.Waiting)),
			Culprits: []rule.Culprit{{PID: h.PID, TID: h.HolderTID, Name: c.ThreadName(h.PID, h.HolderTID), Where: "holds the GIL, " + does}},
			Cites: []rule.Cite{
				c.Cite("the thread that holds the GIL", "waits", h.Look, "python", h.Process, "gil", "holder_tid"),
				c.Cite("changes of hands of the GIL, as in the looks before", "waits", h.Look, "python", h.Process, "gil", "switch_number"),
			},
			FlipsIf: []string{"the call returns and the GIL changes hands"},
			Next:    []rule.Step{{Do: "Look again whether the call has returned", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --window 60s", c.Target.PID)}},
		}
		f.Strength = rule.Open // a long computation: it holds the GIL and works
		if still {
			f.Strength = rule.Strong
		}
		found = append(found, f)
	}
	return found
}

// holderDoes says what the holder of the GIL does; still: it did not run.
func holderDoes(c *rule.Case, h facts.GILHeld) (does string, still bool) {
	t := c.FindThread(h.PID, h.HolderTID)
	if t == nil {
		return "in a call that is not known", false
	}
	switch call := facts.CallName(c.Host.Arch, t.Syscall); {
	case t.State == "R" || call == "running":
		does = "running native code"
	case call != "" && t.Wchan != "":
		does, still = fmt.Sprintf("asleep in %s (%s)", call, t.Wchan), true
	case call != "":
		does, still = "asleep in "+call, true
	default:
		does = "in state " + t.State
	}
	if at := c.Place(h.PID, h.HolderTID); at != "" {
		does += ", " + at
	}
	return does, still
}

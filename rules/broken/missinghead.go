package broken

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// MissingHead is a server of which a part is gone without a trace.
var MissingHead = rule.Rule{
	ID:      "missing-head",
	Verdict: rule.Broken,
	Title:   "A process the server cannot do without was there and is not there any more",
	Doc: `Counts the processes of the tree that play a part the engine needs against those
its command line asks for. One that ended and was reaped leaves nothing in /proc:
the server's front may go on answering /health for days. A part is missing only
if something says that it was there: the log names its PID (vLLM writes it in
each line), or its rank has written to the log, or the log is past the point that
needs all of them (the end of the set-up of communicators, the ready line).

At the start not every part exists yet, so a short count alone says nothing. Nor
does it where a process has no title by which its part could be known: it may be
the one that is looked for. Without one process with a title there is nothing to
count by.

What would make it wrong: a version of the engine that has other processes than
the count expects; parts that were scaled away on purpose; a log that another
server writes to as well. A correct answer makes it only likely.

Sources: the engines' process titles and log prefixes (rules/engines).`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement, evidence.NeedLog},
	Suppresses: []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word"},
	Eval:       evalMissingHead,
	Against: func(c *rule.Case) *rule.Because {
		for _, h := range c.Heads {
			if h.Missing() > 0 {
				return &rule.Because{Says: fmt.Sprintf("%d × %s needed (%s), %d there; nothing says that the others have ever been", h.Expected, h.Role, h.Because, len(h.Living))}
			}
		}
		return nil
	},
}

func evalMissingHead(c *rule.Case) []rule.Finding {
	if c.Engine.Known == nil || c.Phases.Stopping != nil || !c.Moves.Looked {
		return nil
	}
	var found []rule.Finding
	named := map[string]bool{} // roles of which the log names the lost one
	for _, l := range c.LostParts {
		if seenToEnd(c, l.NSPID) || complete(c, l.Role) || !c.Since(l.Written) {
			continue
		}
		named[l.Role] = true
		what := l.Role
		if l.Rank != "" {
			what += " " + l.Rank
		}
		found = append(found, gone(c, fmt.Sprintf("%s's %s (process %d by its own count) wrote line %d of the log and does not exist any more", c.Engine.Known.Name, what, l.NSPID, l.Line),
			rule.Culprit{Name: what, Where: "ended, and was reaped"}, c.Cite("the last line of the part that is gone", l.At...)))
	}
	for _, h := range c.Heads {
		// Whether the engine core is a process of its own is for a variable to
		// say; its lines in the log name its PID.
		if h.Missing() == 0 || named[h.Role] || h.Role == "engine-core" || !titled(c) {
			continue
		}
		why, cite := wasThere(c, h)
		if why == "" {
			continue
		}
		which := fmt.Sprintf("%d × %s", h.Missing(), h.Role)
		if len(h.Absent) == h.Missing() {
			which = h.Role + " " + strings.Join(h.Absent[:min(4, len(h.Absent))], ", ")
		}
		found = append(found, gone(c, fmt.Sprintf("%s's %s is not there: %d needed (%s), %d living; %s", c.Engine.Known.Name, which, h.Expected, h.Because, len(h.Living), why),
			rule.Culprit{Name: which, Where: "ended, and was reaped"}, cite))
	}
	return found
}

// gone is the finding about one part.
func gone(c *rule.Case, says string, who rule.Culprit, cite rule.Cite) rule.Finding {
	f := rule.Finding{Cause: rule.DeadChild, Strength: rule.Strong, Culprits: []rule.Culprit{who},
		Says:    "A part of the server is gone: " + says + ".",
		Cites:   []rule.Cite{cite, c.Cite("the process that should have it", "processes", c.Tree.Index[c.Engine.MainPID], "pid")},
		FlipsIf: []string{"the server starts a new process in its place"},
		Next: []rule.Step{
			{Do: "See whether the kernel killed it", Risk: rule.RiskNone, Command: "sudo dmesg -T | grep -iE 'oom|killed process|segfault|Xid'"},
			{Do: "Look in the log for the first error, then restart the server", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", c.Target.PID)},
		}}
	if c.Check != nil && c.Check.Verdict == evidence.CheckPass {
		f.Strength = rule.Likely
	}
	return f
}

// seenToEnd: whyhang itself saw the process end, or sees its zombie; that is
// for the rule dead-child.
func seenToEnd(c *rule.Case, nspid int) bool {
	for i := range c.Processes {
		p := &c.Processes[i]
		if n := len(p.NSPID); n > 0 && p.NSPID[n-1] == nspid && c.Engine.Roles[p.PID].Head {
			return true
		}
	}
	return false
}

// complete: as many as the command line asks for live.
func complete(c *rule.Case, role string) bool {
	return slices.ContainsFunc(c.Heads, func(h facts.HeadCount) bool { return h.Role == role && len(h.Living) >= h.Expected })
}

// titled: some process beside the main one shows by its title which part it is.
func titled(c *rule.Case) bool {
	for pid, r := range c.Engine.Roles {
		if pid != c.Engine.MainPID && r.Head && c.Tree.Alive[pid] {
			return true
		}
	}
	return false
}

// wasThere says why the missing ones must have been there before; "" if nothing
// says so.
func wasThere(c *rule.Case, h facts.HeadCount) (string, rule.Cite) {
	for _, rank := range h.Absent {
		if ev := c.Phases.Wrote(rank); ev != nil && c.Since(ev.Hit.At) {
			return fmt.Sprintf("%s wrote line %d of the log", rank, ev.Hit.Line), c.Cite("its last known line", ev.Field("text")...)
		}
	}
	if ev := c.Phases.Ready; ev != nil && c.Since(ev.Hit.At) {
		return fmt.Sprintf("line %d of the log says that the server was ready, which takes all of them", ev.Hit.Line), c.Cite("its own word", ev.Field("text")...)
	}
	// Each data parallel replica is a group of its own.
	replicas := strings.Contains(h.Because, "--dp ") || strings.Contains(h.Because, "--data-parallel-size ")
	if ev := c.Phases.Beyond(c.Engine.ID()); ev != nil && c.Since(ev.Hit.At) && (h.Role == "scheduler" || h.Role == "worker") && !replicas {
		return fmt.Sprintf("line %d of the log comes after all ranks have met", ev.Hit.Line), c.Cite("a line that takes all ranks", ev.Field("text")...)
	}
	return "", rule.Cite{}
}

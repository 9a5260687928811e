package broken

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// FatalError is a server whose log says that a part of it failed.
var FatalError = rule.Rule{
	ID:      "fatal-error",
	Verdict: rule.Broken,
	Title:   "The log says that a part of the server failed, and it never became ready",
	Doc: `Looks for the first line since the last launch that the engine prints when a part
of it fails for good (an exception in the scheduler, out of GPU memory, a port
taken), with no ready line after it. The first such line is the cause; later
ones are mostly consequences.

A log line alone is only likely: engines print tracebacks for optional parts and
recover. A correct answer, a proof of a deadlock and visible progress outrank it.

What would make it wrong: text of a prompt that looks like such a line.

Sources: the engines' fatal lines (rules/engines).`,
	Needs:      []evidence.Need{evidence.NeedLog},
	Suppresses: []rule.ID{"no-movement"},
	Eval: func(c *rule.Case) []rule.Finding {
		ev := c.Phases.Fatal
		if ev == nil || c.Phases.Ready != nil {
			return nil
		}
		return []rule.Finding{{Cause: rule.FatalError, Strength: rule.Likely,
			Says:    fmt.Sprintf("A part of it failed: %q (line %d of the log), and it never became ready.", ev.Hit.Text, ev.Hit.Line),
			Cites:   []rule.Cite{c.Cite(fmt.Sprintf("line %d of the log", ev.Hit.Line), ev.Field("text")...)},
			FlipsIf: []string{"a ready line follows"},
			Next:    []rule.Step{{Do: "Read the log from there", Risk: rule.RiskNone, Command: rule.FromLine(c, ev.At, ev.Hit.Line)}},
		}}
	},
	Against: func(c *rule.Case) *rule.Because {
		return &rule.Because{Says: fmt.Sprintf("no fatal line among the %d lines of the log", c.Logs[0].Lines), Cites: []rule.Cite{c.Cite("lines read", "logs", 0, "lines")}}
	},
}

package warning

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
	"github.com/whyhang/whyhang/rules/stalled"
)

// GetsTooLittle warns of a server that moves or answers, on much less processor
// or memory than it wants.
var GetsTooLittle = rule.Rule{
	ID:    "gets-too-little",
	Title: "The server gets much less of the processor or memory than it wants",
	Doc: `Looks at the same as the rule "starved" with gentler bounds: threads that get half
or less of the processor time they want, below a quota that was used up in half
of its periods, or on a crowded machine a quarter or less; memory so short that
everything stands still a fifth of the time.

It is a warning and no verdict: a server that comes nearer to its end is loading,
however slowly, and one that answers is ready. Its start takes longer and its
numbers mislead.

Sources: as for "starved".`,
	Needs: []evidence.Need{evidence.NeedMovement, evidence.NeedLimits},
	Eval: func(c *rule.Case) []rule.Finding {
		if len(stalled.Starved.Eval(c)) > 0 || c.Moves.WindowMS < 1000 {
			return nil // said there
		}
		var found []rule.Finding
		warn := func(says string, cites []rule.Cite) {
			says = "It is starved: " + says
			found = append(found, rule.Finding{Strength: rule.Strong, Says: says, Cites: cites,
				Warning: &rule.Warning{Code: "starved", Says: says, Effect: "everything takes longer than it should, and a benchmark measures the limit", Misleads: true}})
		}
		l := &c.Limits
		switch {
		case l.HeldBack():
			warn(stalled.QuotaSays(c))
		case l.Crowded():
			warn(stalled.CrowdSays(c))
		}
		if l.Thrashes() {
			warn(stalled.MemorySays(c))
		}
		return found
	},
}

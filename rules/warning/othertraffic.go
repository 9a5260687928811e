package warning

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// OtherTraffic warns of a server that serves others at the same time.
var OtherTraffic = rule.Rule{
	ID:    "other-traffic",
	Title: "The server works for others at the same time",
	Doc: `Looks at the engine's own counters: requests that ran or waited before whyhang sent
its question, or more tokens between two readings than whyhang can have asked for. A
benchmark beside other traffic measures both.

What would make it wrong: a request of the engine's own, such as a warm-up.

Sources: the engine's /metrics, /slots or /v1/loads (probes/counters).`,
	Needs: []evidence.Need{evidence.NeedSockets, evidence.NeedCounters},
	Eval: func(c *rule.Case) []rule.Finding {
		k := &c.Counted
		if c.Door.Place(c.Snapshot, c.Asked.URL) == facts.PlaceElsewhere {
			return nil // the counters of somebody else
		}
		var says string
		var cite rule.Cite
		switch n, at := k.Others(c.Snapshot); {
		case n > 0:
			when := "Before whyhang asked"
			if at != k.Before {
				when = "After whyhang had its answer"
			}
			says = when + ", " + facts.CounterSays(&c.Snapshot.Counters[at]) + ", by its own counters."
			cite = c.Cite("its own counters", "counters", at, facts.CounterField(&c.Snapshot.Counters[at]))
		case k.MovedFrom >= 0:
			says = fmt.Sprintf("It made at least %.0f tokens in %.0f s that whyhang did not ask for, by its own counters.", k.Moved, k.Seconds)
			cite = c.Cite("tokens it has generated", "counters", k.MovedTo, "generated_tokens")
		default:
			return nil
		}
		return []rule.Finding{{Strength: rule.Strong, Says: says, Cites: []rule.Cite{cite},
			Warning: &rule.Warning{Code: "other-traffic", Says: says, Detail: "other traffic", Effect: "numbers measured now are those of both", Misleads: true}}}
	},
}

package ready

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// ByCounters is a server that has given whyhang no answer and makes tokens for
// others.
var ByCounters = rule.Rule{
	ID:      "ready-by-counters",
	Verdict: rule.Ready,
	Title:   "The server makes tokens for others",
	Doc: `For a server that was not asked (--no-check) or turned the question away because it
is full (HTTP 429, a full queue): between two readings of the engine's own counters
it made more tokens than whyhang can have asked for. So its scheduler, its ranks and
its GPUs do their work.

Counters that stand still prove nothing either way: a dead engine's say that nothing
runs. It is at most strong: whether what it makes is right was not seen.

What would make it wrong: a counter that grows by itself.

Sources: the engine's /metrics, /slots or /v1/loads (probes/counters).`,
	Needs:      []evidence.Need{evidence.NeedSockets},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval: func(c *rule.Case) []rule.Finding {
		k := &c.Counted
		if k.MovedFrom < 0 || c.Phases.Fatal != nil || c.Door.Listener < 0 || c.Check == nil && c.Phases.Ready != nil {
			return nil
		}
		f := rule.Finding{Cause: rule.Busy, Strength: rule.Strong, FlipsIf: []string{"its counters stand still while requests run"},
			Cites: append([]rule.Cite{c.Cite("tokens it has generated", "counters", k.MovedTo, "generated_tokens")}, readyLine(c)...),
			Next:  []rule.Step{{Do: "Prove it: ask the server", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench", c.Target.PID)}}}
		asked := "it was not asked"
		if c.Check != nil {
			if c.Check.Verdict != evidence.CheckBusy || c.Door.Place(c.Snapshot, c.Asked.URL) != facts.PlaceOwn {
				return nil
			}
			asked = "it turned the question away (" + c.Check.Says + ")"
			f.Cites = append(f.Cites, c.Cite(c.Check.Says, "check", "verdict"))
			f.Next[0].Do = "Ask again when it is less busy"
		}
		f.Says = fmt.Sprintf("It is up and busy: by its own counters it made %.0f tokens for others in %.0f s; %s.", k.Moved, k.Seconds, asked)
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		if len(c.Snapshot.Counters) < 2 {
			return nil
		}
		return &rule.Because{Says: "its own counters show no tokens for others", Cites: []rule.Cite{c.Cite("its last counters", "counters", len(c.Snapshot.Counters)-1, "endpoint")}}
	},
}

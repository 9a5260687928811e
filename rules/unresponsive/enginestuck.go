package unresponsive

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// EngineStuck is an engine that runs requests, by its own counters, and makes no
// token.
var EngineStuck = rule.Rule{
	ID:      "engine-stuck",
	Verdict: rule.Unresponsive,
	Title:   "Requests run, by the engine's own counters, and no token is made",
	Doc: `Looks at the counters that the engine shows of itself (/metrics, /slots, /v1/loads),
read before, during and after the question: requests ran in every reading of at
least five seconds, and neither a generated nor a prompt token was counted, and the
question got no answer. Without a question it is at most likely.

It is open while a GPU works or a process computes: tokens of a prompt are counted
when its prefill is over.

The reverse proves nothing: engines report at the end of a step, so that the first
request they get stuck in is in no counter, and a front end shows the last numbers
of an engine that is dead.

What would make it wrong: an engine that counts a long prefill only at its end, and
computes on a device that whyhang cannot see.

Sources: vLLM v1/metrics/loggers.py, SGLang observability, llama.cpp
tools/server/README.md; measured on vLLM 0.32 and SGLang 0.5.23 with a stopped rank.`,
	Needs:      []evidence.Need{evidence.NeedMovement},
	Suppresses: []rule.ID{"no-answer", "ready-by-its-word"},
	Eval: func(c *rule.Case) []rule.Finding {
		k := &c.Counted
		turnedAway := c.Check != nil && c.Check.Verdict == evidence.CheckBusy
		answered := c.Check != nil && c.Check.Verdict != evidence.CheckError && c.Check.Verdict != evidence.CheckEmpty
		if k.FrozenFrom < 0 || answered && !turnedAway || c.Door.Place(c.Snapshot, c.Asked.URL) != facts.PlaceOwn {
			return nil
		}
		first, last := &c.Snapshot.Counters[k.FrozenFrom], &c.Snapshot.Counters[k.FrozenTo]
		seconds := (last.SinceMS - first.SinceMS) / 1000
		f := rule.Finding{Cause: rule.EngineStuck, Strength: rule.Strong,
			Says:    fmt.Sprintf("Its engine is stuck: by its own counters %s, and for %.0f s it has not made a token", facts.Requests(*last.Running), seconds),
			FlipsIf: []string{"a token is counted"},
			Cites: []rule.Cite{c.Cite("requests that run", "counters", k.FrozenTo, "running"), c.Cite("tokens generated, before", "counters", k.FrozenFrom, "generated_tokens"),
				c.Cite("tokens generated, after", "counters", k.FrozenTo, "generated_tokens")},
			Next: []rule.Step{{Do: "See once more whether a token is counted", Risk: rule.RiskNone, Command: fmt.Sprintf("for i in 1 2; do curl -sS -m 5 %s | grep -E 'running|tokens_total'; sleep 10; done", forCurl(c.Door.URL)+last.Endpoint)}},
		}
		moves := &c.Moves
		if c.Check != nil {
			moves = &c.MovesAsked
			f.Says += "; it was asked: " + c.Check.Says
			f.Cites = append(f.Cites, c.Cite(c.Check.Says, "check", "verdict"))
		}
		if c.Check == nil || turnedAway {
			f.Strength = rule.Likely
		}
		f.Says += "."
		if m := facts.Furthest(moves); m != nil {
			f.Strength = min(f.Strength, rule.Likely)
			f.Cites = append(f.Cites, c.Cite("but something moves: "+facts.MoveSays(m), m.At...))
		}
		if busy, cite := works(c, moves); busy != "" {
			f.Strength = rule.Open
			f.Says = fmt.Sprintf("By its own counters %s and no token was made for %.0f s, but it works: %s. The prefill of a long prompt is counted when it is over.", facts.Requests(*last.Running), seconds, busy)
			f.Cites = append(f.Cites, cite)
			f.Next = []rule.Step{patience(c)}
		}
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		if len(c.Snapshot.Counters) == 0 {
			return nil
		}
		last := len(c.Snapshot.Counters) - 1
		return &rule.Because{Says: "its counters do not say that requests run and no token moves: " + facts.CounterSays(&c.Snapshot.Counters[last]),
			Cites: []rule.Cite{c.Cite("its counters", "counters", last, facts.CounterField(&c.Snapshot.Counters[last]))}}
	},
}

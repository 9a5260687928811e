package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// SaysSoItself is a server that answers "still loading".
var SaysSoItself = rule.Rule{
	ID:      "says-loading",
	Verdict: rule.Loading,
	Title:   "The server itself answers that it is still loading",
	Doc: `Looks at the answer to the check: HTTP 503 with a body about loading (llama.cpp
answers so on every path), or a 503 from /health before the log has the ready
line (SGLang answers so from the moment it listens until its warm-up ends). Such
a server is loading, not unresponsive.

What would make it wrong: a server that hangs in its load and still answers 503;
therefore a look without any movement makes this only likely.

Sources: llama.cpp tools/server, SGLang entrypoints/http_server.py.`,
	Needs:      []evidence.Need{evidence.NeedCheck},
	Suppresses: []rule.ID{"no-answer", "accept-stuck", "engine-stuck", "phase-moves"},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Check == nil || c.Check.Verdict != evidence.CheckLoading {
			return nil
		}
		name := c.Phases.Current
		named, ok := causes[name]
		if !ok {
			name, named = evidence.PhaseStarting, causes[evidence.PhaseStarting]
			if c.WeightsDone.Moving() {
				name, named = evidence.PhaseWeights, causes[evidence.PhaseWeights]
			}
		}
		p := weightsPhase(c, name)
		f := rule.Finding{Cause: named.cause, Strength: rule.Likely, Phase: p, Next: again(c, p),
			Says:    fmt.Sprintf("%s: the server itself answers that it is not ready yet (HTTP %d).", named.says, lastStatus(c)),
			Cites:   []rule.Cite{c.Cite(c.Check.Says, "check", "verdict")},
			FlipsIf: []string{"the answer stays the same while nothing moves"}}
		if pid, _, demand, _ := busiest(c); pid != 0 && demand >= 0.05 {
			f.Strength = rule.Strong
		}
		return []rule.Finding{f}
	},
}

func lastStatus(c *rule.Case) int {
	if n := len(c.Check.Exchanges); n > 0 {
		return c.Check.Exchanges[n-1].HTTPStatus
	}
	return c.Check.HealthStatus
}

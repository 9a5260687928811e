package unresponsive

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// NoAnswer is a server that is up and gave no answer to the check.
var NoAnswer = rule.Rule{
	ID:      "no-answer",
	Verdict: rule.Unresponsive,
	Title:   "The server is up and does not answer",
	Doc: `Looks at where the check stopped: no connection, no headers, no token, a stream
that stalled, an error in place of an answer. It is strong when nothing in the
tree moved while whyhang waited, and only likely while something moves.

A long prefill or a full batch is mute as well: while a GPU works, by its power
and memory traffic, or a process computes in an engine that rests when it is
idle, no answer decides nothing.

/health is not asked for a proof: several engines answer 200 with a dead engine
behind it.

What would make it wrong: a server so busy that its first token takes longer
than the limit (--check-timeout); the second question that an idle server with
cold kernels would have answered a moment later.

Sources: the exchange itself; engine endpoints as in the engines' files.`,
	Needs: []evidence.Need{evidence.NeedCheck},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Check == nil || c.Check.Verdict != evidence.CheckError && c.Check.Verdict != evidence.CheckEmpty {
			return nil
		}
		place := c.Door.Place(c.Snapshot, c.Asked.URL)
		if place == facts.PlaceElsewhere {
			return nil // not this server's socket: see rules/undecided.go
		}
		f := rule.Finding{Cause: rule.NoAnswer, Strength: rule.Strong,
			Says:    "It is up and does not answer: " + c.Check.Says + ".",
			Cites:   []rule.Cite{c.Cite(c.Check.Says, "check", "verdict")},
			FlipsIf: []string{"a later request is answered"},
			Next: []rule.Step{{Do: "Ask once more by hand, with patience", Risk: rule.RiskLow,
				Command: "curl -sS -m 300 " + forCurl(c.Check.URL) + "/v1/models"}},
		}
		if n := len(c.Check.Exchanges); n > 0 {
			field := "error_type"
			if c.Check.Exchanges[n-1].ErrorType == "" {
				field = "finish_reason"
			}
			f.Cites = append(f.Cites, c.Cite("how the last request ended", "check", "exchanges", n-1, field))
		}
		if place == facts.PlaceUnknown {
			f.Strength = rule.Likely
			f.Says = fmt.Sprintf("%s, if it leads to this server, gives no answer: %s.", c.Check.URL, c.Check.Says)
		}
		if m := facts.Furthest(&c.MovesAsked); m != nil {
			f.Strength = rule.Likely
			f.Cites = append(f.Cites, c.Cite("but something moves: "+facts.MoveSays(m), m.At...))
		}
		if k := &c.Counted; k.MovedFrom >= 0 {
			f.Strength = rule.Open
			f.Says = fmt.Sprintf("It is busy and has not answered yet (%s): by its own counters it made at least %.0f tokens for others in %.0f s.", c.Check.Says, k.Moved, k.Seconds)
			f.Cites = append(f.Cites, c.Cite("tokens it has generated", "counters", k.MovedTo, "generated_tokens"))
			f.Next = []rule.Step{patience(c)}
		} else if busy, cite := works(c, &c.MovesAsked); busy != "" {
			f.Strength = rule.Open
			f.Says = fmt.Sprintf("It is up, has not answered (%s), and works: %s. A long prefill or a full batch is mute as well.", c.Check.Says, busy)
			f.Cites = append(f.Cites, cite)
			f.Next = []rule.Step{patience(c)}
		}
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		return &rule.Because{Says: c.Check.Says, Cites: []rule.Cite{c.Cite("result of the check", "check", "verdict")}}
	},
}

// patience is the step for a server that may only be busy.
func patience(c *rule.Case) rule.Step {
	return rule.Step{Do: "Ask with more patience", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench --check-timeout 10m", c.Target.PID)}
}

// computes is the share of a processor, in user code, above which a process is
// at work.
const computes = 0.5

// works says what worked during these moves, "" if nothing did. Engines
// that spin while they are idle are believed no processor time.
func works(c *rule.Case, moves *facts.Movement) (string, rule.Cite) {
	for _, g := range facts.GPUStates(c.Snapshot, moves) {
		if g.Does == facts.GPUWorks {
			says := fmt.Sprintf("GPU %d is %d %% busy at %.0f %% of its power limit, memory %d %% busy", g.Index, g.UtilPercent, g.PowerPercent, g.MemoryPercent)
			return says, c.Cite(says, "frames", g.Frame, "gpus", g.Position, "power_w")
		}
	}
	if c.Engine.Known != nil && c.Engine.Known.SpinsIdle {
		return "", rule.Cite{}
	}
	pid, _, _, user := facts.Busiest(c.Snapshot, moves)
	m := moves.Most(facts.CPUUser)
	if m == nil || user < computes {
		return "", rule.Cite{}
	}
	return fmt.Sprintf("process %d computes", pid), c.Cite(facts.MoveSays(m), m.At...)
}

// forCurl is a server's URL in the words of curl.
func forCurl(url string) string {
	if path, ok := strings.CutPrefix(url, "unix:"); ok {
		if name, abstract := strings.CutPrefix(path, "@"); abstract {
			return "--abstract-unix-socket " + rule.Quoted(name) + " http://localhost"
		}
		return "--unix-socket " + rule.Quoted(path) + " http://localhost"
	}
	return url
}

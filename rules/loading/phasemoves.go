package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// PhaseMoves is a server in any other phase of its start that comes further.
var PhaseMoves = rule.Rule{
	ID:      "phase-moves",
	Verdict: rule.Loading,
	Title:   "The start goes on",
	Doc: `Looks for a known engine that is not up and moves: the log names a phase of the
start (starting, download, communicator, autotune, graph capture, warm-up), and
bytes, memory, new log content or processor time move as well. Without a log
the start itself is the phase.

Processor time alone is only likely, and so is a log line alone. Memory and bytes
beside little processor time are likely as well, and looked at for the whole
window: a thread that polls has both.

What would make it wrong: a phase that spins for ever.

Sources: the engines' log lines (rules/engines).`,
	Needs:      []evidence.Need{evidence.NeedMovement},
	Suppresses: []rule.ID{"no-movement"},
	Eval:       evalPhaseMoves,
	Against: func(c *rule.Case) *rule.Because {
		if ev := c.Phases.Ready; ev != nil {
			return &rule.Because{Says: fmt.Sprintf("line %d of the log says that the server is ready", ev.Hit.Line),
				Cites: []rule.Cite{c.Cite("its own word", ev.Field("text")...)}}
		}
		if facts.Furthest(&c.Moves) == nil {
			return &rule.Because{Says: "nothing moves towards an end"}
		}
		return nil
	},
}

// causes are the phases of the start as causes.
var causes = map[evidence.Phase]struct {
	cause rule.Cause
	says  string
}{
	evidence.PhaseStarting:     {rule.Starting, "It starts"},
	evidence.PhaseDownload:     {rule.Download, "It downloads its model"},
	evidence.PhaseCommunicator: {rule.CommunicatorUp, "Its ranks set up their communicators"},
	evidence.PhaseWeights:      {rule.WeightsRead, "It loads its weights"},
	evidence.PhaseConvert:      {rule.WeightsConvert, "It converts its weights"},
	evidence.PhaseKernelBuild:  {rule.KernelBuild, "It builds kernels"},
	evidence.PhaseGraphCompile: {rule.GraphCompile, "It compiles its model's graph"},
	evidence.PhaseAutotune:     {rule.Autotune, "It tunes its kernels"},
	evidence.PhaseGraphCapture: {rule.GraphCapture, "It captures GPU graphs"},
	evidence.PhaseWarmUp:       {rule.WarmUp, "It warms up"},
}

func evalPhaseMoves(c *rule.Case) []rule.Finding {
	if upAlready(c) || c.Engine.Known == nil {
		return nil
	}
	current := c.Phases.Current
	if current == "" {
		// A listener without a log may be a server that is up.
		if c.Door.Listens && !c.Engine.Known.ListensEarly || c.Door.NotKnown != "" {
			return nil
		}
		current = evidence.PhaseStarting
	}
	named, ok := causes[current]
	if !ok {
		return nil
	}
	p := phase(c, current)
	f := rule.Finding{Cause: named.cause, Strength: rule.Likely, Phase: p, Next: again(c, p),
		FlipsIf: []string{"nothing moves over a whole window"}}
	pid, share, demand, _ := busiest(c)
	moved := facts.Furthest(&c.Moves)
	switch {
	case moved != nil && demand >= 0.05:
		if demand >= leastShare || !facts.MayBeByTheWay(moved) {
			f.Strength = rule.Strong
		}
		f.Says = fmt.Sprintf("%s: %s, and %s.", named.says, facts.MoveSays(moved), uses(c, pid, share, demand))
	case moved != nil:
		f.Says = fmt.Sprintf("%s: %s.", named.says, facts.MoveSays(moved))
	case demand >= leastShare:
		f.Says = fmt.Sprintf("%s: %s.", named.says, uses(c, pid, share, demand))
	default:
		return nil
	}
	if moved != nil {
		f.Cites = append(f.Cites, citeMove(c, moved))
	}
	if m := c.Moves.Most(facts.CPUUser); m != nil {
		f.Cites = append(f.Cites, citeMove(c, m))
	}
	f.Cites = append(f.Cites, citeLog(c)...)
	f.Says += c.OddRanks() + patience(p)
	if moved == nil {
		believe(c, &f, p, pid)
	}
	return []rule.Finding{f}
}

package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// WeightsConvert is a server that repacks or dequantises what it has read.
var WeightsConvert = rule.Rule{
	ID:      "weights-convert",
	Verdict: rule.Loading,
	Title:   "The weights are being converted (dequantised, repacked)",
	Doc: `Looks for a process in user code on at least a third of a processor, in a tree
that has its weights in its hands and reads no more of them, and that is not up.
Engines dequantise and repack after the last byte was read, often on one thread,
for minutes, without one log line: the incident behind this tool was 313 s of
it, taken for a deadlock.

Growing private memory or page faults beside the processor time make it strong.
Processor time alone is only likely: a thread that spins for ever looks the
same from outside, and the report names the moment after which to doubt it.

What would make it wrong: a spinning thread in a server whose log ended in the
weights; a server that is up and busy (therefore a listener without a log that
says "weights" keeps the rule silent).

Sources: SGLang and vLLM process_weights_after_loading; proc_pid_stat(5) utime,
minflt; proc_pid_status(5) RssAnon.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedOpenFiles},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval:       evalWeightsConvert,
	Against: func(c *rule.Case) *rule.Because {
		pid, share, demand, _ := busiest(c)
		if pid == 0 {
			return &rule.Because{Says: "no process uses a processor"}
		}
		m := c.Moves.Most(facts.CPUUser)
		if m == nil {
			return nil
		}
		return &rule.Because{Says: "the busiest, " + uses(c, pid, share, demand), Cites: []rule.Cite{citeMove(c, m)}}
	},
}

// leastShare is the user time, as a share of one processor, that makes a
// process "at work": timers and pollers stay far below.
const leastShare = 0.3

func evalWeightsConvert(c *rule.Case) []rule.Finding {
	if upAlready(c) || c.WeightsDone.Moving() && !c.WeightsDone.Complete() {
		return nil
	}
	pid, share, demand, user := busiest(c)
	if user < leastShare {
		return nil
	}
	logSays := c.Phases.Current == evidence.PhaseConvert || c.Phases.Current == evidence.PhaseWeights && !c.Phases.Ended(evidence.PhaseWeights)
	handsSay := mostIsIn(&c.WeightsDone) && !c.Door.Listens && !beforeWeights(c) && !laterPhase(c)
	if !logSays && !handsSay {
		return nil
	}
	p := phase(c, evidence.PhaseConvert)
	f := rule.Finding{Cause: rule.WeightsConvert, Strength: rule.Likely, Phase: p, Next: again(c, p),
		FlipsIf: []string{fmt.Sprintf("%s stops using the processor, or goes on for much longer than the file sizes explain", who(c, pid))}}
	cpu := c.Moves.Most(facts.CPUUser)
	f.Cites = append(f.Cites, citeMove(c, cpu))
	f.Says = fmt.Sprintf("It converts its weights: %s and reads nothing more.", uses(c, pid, share, demand))
	for _, k := range []facts.Kind{facts.MemoryAnon, facts.GPUMemory, facts.Faults} {
		if m := c.Moves.Most(k); m != nil && m.Delta > 0 && (k != facts.Faults || m.PerS >= 100) {
			f.Strength = rule.Strong
			f.Cites = append(f.Cites, citeMove(c, m))
			f.Says = fmt.Sprintf("It converts its weights: %s, and %s.", uses(c, pid, share, demand), facts.MoveSays(m))
			break
		}
	}
	if logSays {
		f.Cites = append(f.Cites, citeLog(c)...)
	}
	f.Says += ranks(c, evidence.PhaseWeights) + patience(p)
	if f.Strength == rule.Likely {
		believe(c, &f, p, pid)
	}
	return []rule.Finding{f}
}

// mostIsIn: more of the weights has been read than a look at their headers
// takes.
func mostIsIn(w *facts.WeightsDone) bool {
	return w.Known && (w.TotalBytes <= 0 || w.DoneBytes >= w.TotalBytes/10)
}

// beforeWeights tells whether the log is in a phase that comes before the first
// byte of the weights.
func beforeWeights(c *rule.Case) bool {
	return c.Phases.Current == evidence.PhaseCommunicator || c.Phases.Current == evidence.PhaseDownload
}

// laterPhase tells whether the log is past the weights.
func laterPhase(c *rule.Case) bool {
	switch c.Phases.Current {
	case "", evidence.PhaseStarting, evidence.PhaseDownload, evidence.PhaseCommunicator, evidence.PhaseWeights, evidence.PhaseConvert:
		return false
	}
	return true
}

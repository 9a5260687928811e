package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// WeightsRead is a server that reads its model.
var WeightsRead = rule.Rule{
	ID:      "weights-read",
	Verdict: rule.Loading,
	Title:   "The weights are being read",
	Doc: `Looks at the weight files the tree has mapped or open (.safetensors, .gguf and
the like) and at how far each has come between the looks: the offset of the
descriptor for read(), the resident part of the mapping for mmap (read counters
do not show it), all bytes of read calls for pread. Growing means loading.

The size comes from the files of the model directory and their headers; the
shard bar in the log counts those that are closed again. Of several ranks that
each read the whole model the one furthest behind counts; what ranks read of
files of their own is added up. The time left comes from the window and from the
average since the reading began (by the log, or by the age of a process that is
no Python program), and has a range.

What would make it wrong: a server that is up and pages its model in lazily
(therefore the rule is silent once the log has the ready line); a memory-starved
machine that reads the same pages again and again.

Sources: proc_pid_fdinfo(5) pos, proc_pid_smaps(5) Rss, proc_pid_status(5)
RssFile, proc_pid_io(5) rchar; measured on Linux 6.18.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedOpenFiles},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval:       evalWeightsRead,
	Against: func(c *rule.Case) *rule.Because {
		w := c.WeightsDone
		switch {
		case !w.Held:
			return &rule.Because{Says: "no process has a weight file mapped or open"}
		case w.Complete():
			return &rule.Because{Says: fmt.Sprintf("all %s of the weights have been read", facts.Bytes(w.TotalBytes)), Cites: []rule.Cite{citeWeights(c)}}
		case w.Known:
			return &rule.Because{Says: fmt.Sprintf("%s of the weights are in memory and no more come", facts.Bytes(w.DoneBytes)), Cites: []rule.Cite{citeWeights(c)}}
		}
		return nil
	},
}

func evalWeightsRead(c *rule.Case) []rule.Finding {
	w := c.WeightsDone
	if upAlready(c) || !w.Moving() || w.Complete() {
		return nil
	}
	p := weightsPhase(c, evidence.PhaseWeights)
	f := rule.Finding{Cause: rule.WeightsRead, Strength: rule.Likely, Phase: p, Cites: []rule.Cite{citeWeights(c)},
		FlipsIf: []string{"no byte comes over a whole window"}, Next: again(c, p)}
	f.Says = fmt.Sprintf("It reads its weights: %s at %s/s", facts.Bytes(w.DoneBytes), facts.Bytes(w.Rate))
	if p.ETA != nil {
		f.Says = fmt.Sprintf("It reads its weights: %s of %s (%.0f %%) at %s/s, about %s left",
			facts.Bytes(w.DoneBytes), facts.Bytes(w.TotalBytes), *p.Percent, facts.Bytes(w.Rate), facts.Lasting(*p.ETA))
	}
	f.Says += "." + sideBySide(c) + ranks(c, evidence.PhaseWeights)
	// A second, independent sign: memory, faults or storage moved as well, or
	// the log names the phase.
	for _, k := range []facts.Kind{facts.MemoryFile, facts.BytesRead, facts.DiskRead, facts.MemoryAnon, facts.GPUMemory, facts.PageCache, facts.Faults, facts.CPUSystem} {
		if m := c.Moves.Most(k); m != nil && m.Delta > 0 && !sameCounter(m, w) {
			f.Strength = rule.Strong
			f.Cites = append(f.Cites, citeMove(c, m))
			break
		}
	}
	if c.Engine.Known == nil && copies(c) {
		f.Strength = rule.Likely
		f.Says += " It writes as much as it reads: it may just copy them."
	}
	if c.Phases.Current == evidence.PhaseWeights {
		f.Strength = rule.Strong
		f.Cites = append(f.Cites, citeLog(c)...)
	}
	return []rule.Finding{f}
}

// sideBySide says how several processes share the reading.
func sideBySide(c *rule.Case) string {
	w := c.WeightsDone
	switch {
	case len(w.Ranks) < 2:
		return ""
	case w.Split:
		return fmt.Sprintf(" %d ranks read a part each.", len(w.Ranks))
	}
	says := fmt.Sprintf(" %d ranks read all of it each; %s is furthest behind.", len(w.Ranks), who(c, w.PID))
	for _, r := range w.Ranks {
		if !r.Moves() && r.Done < w.DoneBytes {
			says += fmt.Sprintf(" But %s stands still at %s.", who(c, r.PID), facts.Bytes(r.Done))
			break
		}
	}
	return says
}

// copies: somebody writes about as many bytes as are read.
func copies(c *rule.Case) bool {
	in, out := c.Moves.Most(facts.BytesRead), c.Moves.Most(facts.BytesOut)
	return in != nil && out != nil && in.PID == out.PID && out.Delta > in.Delta/2
}

// sameCounter tells whether a move is the very counter the progress was read
// from: that is one sign, not two.
func sameCounter(m *facts.Move, w facts.WeightsDone) bool {
	return rule.Pointer(m.At...) == rule.Pointer(w.At...)
}

// citeWeights cites where the progress of the weights was read.
func citeWeights(c *rule.Case) rule.Cite {
	w := c.WeightsDone
	if len(w.At) == 0 {
		return rule.Cite{}
	}
	return c.Cite(fmt.Sprintf("%s of %s, by %s", facts.Bytes(w.DoneBytes), w.Path, w.How), w.At...)
}

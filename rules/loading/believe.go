package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// believe weighs a finding that rests on processor time alone: a healthy silent
// phase and an endless loop look the same from outside. For as long as the
// phase may be silent it is likely, and says until when; after that it is no
// more than possible, and carries no verdict, unless a GPU works. busy is the
// process that computes.
func believe(c *rule.Case, f *rule.Finding, p *facts.Phase, busy int) {
	quiet, known := c.Phases.Quiet(c.Snapshot)
	if !known || p.Silence == 0 {
		return
	}
	if left := p.Silence - quiet; left > 0 {
		f.FlipsIf = append(f.FlipsIf, fmt.Sprintf("the log says nothing new until %s: then the phase has been silent for longer than it may be",
			c.Taken.Add(left).Format("15:04:05 -07:00")))
		return
	}
	for _, g := range facts.GPUStates(c.Snapshot, &c.Moves) {
		if g.Does == facts.GPUWorks {
			f.Says += fmt.Sprintf(" GPU %d works, at %.0f %% of its power limit.", g.Index, g.PowerPercent)
			f.Cites = append(f.Cites, c.Cite(fmt.Sprintf("power of GPU %d in W", g.Index), "frames", g.Frame, "gpus", g.Position, "power_w"))
			return
		}
	}
	f.Strength = rule.Open
	f.Culprits = append(f.Culprits, rule.Culprit{PID: busy, Where: "computes, and nothing tells what for"})
	f.Says += fmt.Sprintf(" The log has named nothing new for %s, and a thread that spins for ever looks the same.", facts.Lasting(quiet.Seconds()))
}

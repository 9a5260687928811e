package unresponsive

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// GPUKernelStuck is a server that waits for a kernel that does not return.
var GPUKernelStuck = rule.Rule{
	ID:      "gpu-kernel-stuck",
	Verdict: rule.Unresponsive,
	Title:   "The server does not answer, and a kernel spins on its GPU",
	Doc: `Looks for a server that gave no answer to the check while a kernel was resident
on its GPU all the time, at the power and memory traffic of an idle card. It is
up, and waits for that kernel: /health may go on answering 200 for hours.

A GPU at 100 % with the power and memory traffic of work is busy, and keeps this
rule silent.

What would make it wrong: a small kernel that computes in registers alone for
minutes.

Sources: vllm-project/vllm issues 42897, 41725; NVML utilisation rates.`,
	Needs:      []evidence.Need{evidence.NeedCheck, evidence.NeedGPU},
	Suppresses: []rule.ID{"no-answer", "accept-stuck", "engine-stuck"},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Check == nil || c.Check.Verdict != evidence.CheckError && c.Check.Verdict != evidence.CheckEmpty {
			return nil
		}
		if c.Door.Place(c.Snapshot, c.Asked.URL) == facts.PlaceElsewhere {
			return nil
		}
		var f *rule.Finding
		for _, g := range facts.GPUStates(c.Snapshot, &c.MovesAsked) {
			switch g.Does {
			case facts.GPUWorks:
				return nil
			case facts.GPUSpins:
				cite := c.Cite(fmt.Sprintf("GPU %d while it was asked: %d %% busy, memory %d %% busy, %.0f %% of its power limit (at most %d %% is no work)",
					g.Index, g.UtilPercent, g.MemoryPercent, g.PowerPercent, facts.SpinPower), "frames", g.Frame, "gpus", g.Position, "power_w")
				if f == nil {
					f = &rule.Finding{Cause: rule.GPUKernelStuck, Strength: rule.Strong,
						Says: fmt.Sprintf("It is up and does not answer (%s), and a kernel spins on GPU %d without work: it does not come back.", c.Check.Says, g.Index),
						Next: []rule.Step{
							{Do: "See what the kernel log says of the GPU", Risk: rule.RiskNone, Command: "sudo dmesg -T | grep -iE 'xid|nvrm' | tail"},
							{Do: "Name the kernel before the server is restarted", Risk: rule.RiskLow, Command: fmt.Sprintf("cuda-gdb -p %d -batch -ex 'info cuda kernels'", c.Target.PID)}},
						FlipsIf: []string{"a later request is answered", "the GPU's power or memory traffic rises"}}
				}
				f.Cites = append(f.Cites, cite)
			}
		}
		if f == nil {
			return nil
		}
		f.Cites = append(f.Cites, c.Cite(c.Check.Says, "check", "verdict"))
		return []rule.Finding{*f}
	},
}

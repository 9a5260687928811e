package warning

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// DriverSilent warns that the GPU driver did not answer whyhang.
var DriverSilent = rule.Rule{
	ID:    "driver-silent",
	Title: "The GPU driver did not answer",
	Doc: `Looks at how the question to the GPU driver ended. A driver that does not answer
within seconds, or whose library crashes, is often what the server waits for as
well. It is a warning and no verdict: a driver may be slow for a moment, and a
server may not need it.

Sources: reports of nvidia-smi and NVML that hang behind a wedged driver.`,
	Eval: func(c *rule.Case) []rule.Finding {
		for i, p := range c.Probes {
			if p.Name != evidence.ProbeGPU || p.Status != evidence.Timeout && p.Status != evidence.Failed {
				continue
			}
			if p.Status == evidence.Timeout && (c.GPU == nil || c.GPU.Child == nil || c.GPU.Child.Stage == "") {
				continue // it never came to ask: a crowded machine, not the driver
			}
			return []rule.Finding{{Strength: rule.Likely, Says: p.Detail, Cites: []rule.Cite{c.Cite("how the question to the driver ended", "probes", i, "status")},
				Warning: &rule.Warning{Code: "driver-silent", Says: p.Detail, Effect: "GPU facts are missing from this report; the server may wait for the same driver"}}}
		}
		return nil
	},
}

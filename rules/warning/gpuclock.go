package warning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// GPUHeldDown warns of GPUs whose clocks are held down.
var GPUHeldDown = rule.Rule{
	ID:    "gpu-held-down",
	Title: "GPUs may not run as fast as they could",
	Doc: `Looks at the reasons that the driver gives for the clocks of the GPUs: heat, the
board's power brake, a slowdown that the hardware asked for, or clocks that
somebody has set. That a GPU draws as much power as its limit allows is how a busy
one should be, and that its clocks are low while it idles too: neither is said.

Where several GPUs work in step, the slowest sets the pace of all.

Sources: nvml.h, nvmlClocksEventReasons; the driver's answer to
nvmlDeviceGetCurrentClocksEventReasons (before driver 535:
nvmlDeviceGetCurrentClocksThrottleReasons).`,
	Needs: []evidence.Need{evidence.NeedGPU},
	Eval: func(c *rule.Case) []rule.Finding {
		why := map[string][]int{}
		at := map[string]rule.Cite{}
		var order []string
		for n := range c.Frames {
			for i := range c.Frames[n].GPUs {
				g := &c.Frames[n].GPUs[i]
				if g.ClockReasons == nil {
					continue
				}
				for _, r := range clockReasons {
					if *g.ClockReasons&r.bit == 0 || slices.Contains(why[r.says], g.Index) {
						continue
					}
					if why[r.says] == nil {
						order = append(order, r.says)
						at[r.says] = c.Cite(fmt.Sprintf("why the clocks of GPU %d are as they are", g.Index), "frames", n, "gpus", i, "clock_reasons")
					}
					why[r.says] = append(why[r.says], g.Index)
				}
			}
		}
		var found []rule.Finding
		for _, says := range order {
			gpus := fmt.Sprintf("GPU %d is", why[says][0])
			if n := len(why[says]); n > 1 {
				gpus = fmt.Sprintf("%d GPUs (%s) are", n, numbers(why[says]))
			}
			text := fmt.Sprintf("%s held down: %s.", gpus, says)
			found = append(found, rule.Finding{Strength: rule.Strong, Says: text, Cites: []rule.Cite{at[says]},
				Warning: &rule.Warning{Code: "gpu-held-down", Says: text, Detail: "GPU clocks: " + says, Effect: "the slowest GPU sets the pace of all", Misleads: true},
				Next:    []rule.Step{{Do: "See how far, and since when", Risk: rule.RiskNone, Command: "nvidia-smi -q -d PERFORMANCE,CLOCK,TEMPERATURE"}}})
		}
		return found
	},
}

// clockReasons are the bits of nvmlClocksEventReasons that hold a GPU down.
var clockReasons = []struct {
	bit  uint64
	says string
}{
	{0x40, "the hardware slows it down for heat"},
	{0x20, "the driver slows it down for heat"},
	{0x80, "the power supply asked for less (power brake)"},
	{0x08, "the hardware slows it down, for heat, power or a power brake"},
	{0x02, "its clocks were set by hand (nvidia-smi -ac or -lgc)"},
	{0x10, "it follows the slowest of a group (sync boost)"},
}

func numbers(all []int) string {
	var words []string
	for _, n := range all {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}

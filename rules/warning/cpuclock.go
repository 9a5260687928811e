package warning

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// CPUHeldDown warns of processors that may not run as fast as they could.
var CPUHeldDown = rule.Rule{
	ID:    "cpu-held-down",
	Title: "The processors may not run as fast as they could",
	Doc: `Looks at how the kernel steers the clocks of the processors: a governor that keeps
them at their lowest ("powersave" of the generic drivers; with intel_pstate and
amd-pstate-epp the word means something else and costs little), or a highest clock
set below nine tenths of what the hardware can. Each token needs the CPU to launch
its kernels: single streams are as slow as the CPU.

Where the kernel does not steer the clocks, as in most virtual machines, --strict
lists them as not known.

Sources: Documentation/admin-guide/pm/cpufreq.rst, intel_pstate.rst,
amd-pstate.rst.`,
	Needs: []evidence.Need{evidence.NeedTree, evidence.NeedClocks},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Kernel == nil {
			return nil
		}
		var found []rule.Finding
		for i := range c.Kernel.CPUClocks {
			k := &c.Kernel.CPUClocks[i]
			says, field := clockSays(k)
			if says == "" {
				continue
			}
			says = fmt.Sprintf("%d processors are held down: %s.", k.CPUs, says)
			found = append(found, rule.Finding{Strength: rule.Strong, Says: says,
				Cites: []rule.Cite{c.Cite("how "+fmt.Sprint(k.CPUs)+" processors are clocked", "kernel", "cpu_clocks", i, field)},
				Warning: &rule.Warning{Code: "cpu-held-down", Says: says, Detail: "CPU " + strings.ReplaceAll(field, "_", " "),
					Effect: "slower steps wherever the CPU launches the work of the GPU", Misleads: true},
				Next: []rule.Step{{Do: "Let them run at full speed while you measure", Risk: rule.RiskLow, Command: "sudo cpupower frequency-set -g performance"}}})
		}
		return found
	},
}

// clockSays says what holds processors down, and the field that shows it; ""
// for nothing.
func clockSays(k *evidence.CPUClock) (says, field string) {
	steersItself := k.Driver == "intel_pstate" || k.Driver == "amd-pstate-epp"
	switch {
	case k.Governor == "powersave" && !steersItself && k.Driver != "" && (k.HardwareKHz == 0 || k.LowestKHz < k.HardwareKHz):
		says = fmt.Sprintf("the governor powersave of %s keeps them at their lowest clock", k.Driver)
		if k.LowestKHz > 0 {
			says += fmt.Sprintf(", %.1f of %.1f GHz", float64(k.LowestKHz)/1e6, float64(k.HardwareKHz)/1e6)
		}
		return says, "governor"
	case k.MostKHz > 0 && k.HardwareKHz > 0 && float64(k.MostKHz) < 0.9*float64(k.HardwareKHz):
		return fmt.Sprintf("their clock is limited to %.1f of %.1f GHz", float64(k.MostKHz)/1e6, float64(k.HardwareKHz)/1e6), "most_khz"
	}
	return "", ""
}

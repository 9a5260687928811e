package deadlocked

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// CommunicatorSpin is a server whose GPUs wait for each other for ever.
var CommunicatorSpin = rule.Rule{
	ID:      "communicator-spin",
	Verdict: rule.Deadlocked,
	Title:   "GPUs spin in the set-up of their communicators",
	Doc: `Looks for a log whose last phase is the set-up of the communicators and that has
named nothing new for longer than this phase may be silent, for GPUs on which a
kernel is resident all the time at the power and memory traffic of an idle card,
with next to no memory in use, and for a tree in which nothing moves towards an
end. Such kernels wait for a peer that cannot be reached: PCIe access control
(ACS), an IOMMU, a full /dev/shm or a wrong interface are the usual reasons.

100 % utilisation is no work by itself: power and memory traffic tell. For as
long as the phase may be silent the verdict is loading.

What would make it wrong: a set-up over hundreds of ranks that takes longer than
the engine's usual limit; a card whose idle power is a third of its limit.

Sources: vllm-project/vllm issues 12664, 8087, 23979; NVML utilisation rates.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedLog, evidence.NeedGPU},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval:       evalCommunicatorSpin,
}

// emptyGPU is how much memory a GPU may have in use before weights come, in
// bytes: contexts and communicators take half a gibibyte.
const emptyGPU = 4 << 30

func evalCommunicatorSpin(c *rule.Case) []rule.Finding {
	if c.Phases.Current != evidence.PhaseCommunicator || c.Phases.Ready != nil || c.Engine.Known == nil || facts.Furthest(&c.Moves) != nil {
		return nil
	}
	quiet, known := c.Phases.Quiet(c.Snapshot)
	if !known || quiet <= c.Engine.Known.Silence[evidence.PhaseCommunicator] {
		return nil
	}
	spinning := 0
	var cites []rule.Cite
	for _, g := range facts.GPUStates(c.Snapshot, &c.Moves) {
		switch {
		case g.Does == facts.GPUSpins && g.Flat && g.UsedBytes < emptyGPU:
			spinning++
			cites = append(cites, c.Cite(gpuSays(g), "frames", g.Frame, "gpus", g.Position, "power_w"))
		case g.Does == facts.GPUIdle:
		default:
			return nil
		}
	}
	if spinning == 0 {
		return nil
	}
	f := rule.Finding{Cause: rule.CommunicatorSpin, Strength: rule.Strong, Cites: cites,
		Says: fmt.Sprintf("Its GPUs wait for each other for ever: %d of them spin without work in the set-up of the communicators, and the log has named nothing new for %s.",
			spinning, facts.Lasting(quiet.Seconds())),
		FlipsIf: []string{"the log goes on", "a GPU's power or memory traffic rises"},
		Next: []rule.Step{
			{Do: "See whether PCIe access control (ACS) or an IOMMU stands between the GPUs", Risk: rule.RiskNone, Command: "sudo lspci -vvv | grep -i acsctl; dmesg | grep -iE 'iommu|dmar'; nvidia-smi topo -m; df -h /dev/shm"},
			{Do: "Start again with the library's own words, to see which path it takes", Risk: rule.RiskHigh, Command: "NCCL_DEBUG=INFO NCCL_P2P_DISABLE=1 …"},
		}}
	if ev := c.Phases.LastLine; ev != nil {
		f.Cites = append(f.Cites, c.Cite(fmt.Sprintf("line %d of the log, the last that names a phase", ev.Hit.Line), ev.Field("text")...))
	}
	return []rule.Finding{f}
}

// gpuSays is the pair of figures that tells a spin from work.
func gpuSays(g facts.GPUState) string {
	return fmt.Sprintf("GPU %d: %d %% busy, memory %d %% busy, %.0f %% of its power limit (at most %d %% is no work)", g.Index, g.UtilPercent, g.MemoryPercent, g.PowerPercent, facts.SpinPower)
}

package loading

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// GraphCompile is a server that compiles its model.
var GraphCompile = rule.Rule{
	ID:      "graph-compile",
	Verdict: rule.Loading,
	Title:   "The model's graph is being compiled (torch.compile)",
	Doc: `Looks for a log whose last phase is compilation, or a compiler whose command
line is torch inductor's, and for work in the tree: a process on the processor,
or compilers (g++, cc1plus, ld, ptxas, inductor workers) that are born and end.
vLLM with an empty cache compiles for minutes
with a silent log, and other processes print that nothing comes from it.

Compilation shows three pictures, all healthy: user time with page faults and
growing memory; children while the parent waits; and a warm-up run of pure user
time that looks like an endless loop. The last is only likely.

What would make it wrong: a compiler that hangs on the processor.

Sources: a vLLM 0.32 start recorded every 2 s; vllm/compilation/backends.py.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedLog},
	Suppresses: []rule.ID{"no-movement", "phase-moves", "weights-convert"},
	Eval: func(c *rule.Case) []rule.Finding {
		if upAlready(c) || c.Phases.Current != evidence.PhaseGraphCompile && !inductorCompiles(c) {
			return nil
		}
		return compileFinding(c, rule.GraphCompile, evidence.PhaseGraphCompile, "It compiles its model's graph")
	},
	Against: func(c *rule.Case) *rule.Because {
		return &rule.Because{Says: "the log's last phase is no compilation", Cites: citeLog(c)}
	},
}

// KernelBuild is a server that builds kernels for its GPU.
var KernelBuild = rule.Rule{
	ID:      "kernel-build",
	Verdict: rule.Loading,
	Title:   "Kernels are being built (JIT)",
	Doc: `Looks for compilers among the living processes of the tree (nvcc, cicc, ptxas,
ninja, cc1plus, g++ and the like), or a log whose last phase is a kernel build
while something in the tree works. The first start of a new version builds for
minutes; the server's own threads sleep meanwhile.

Idle inductor workers live as long as the server and are no compilers. Ranks
that wait for the builder's lock, asleep in flock or looking again and again,
are counted with it.

What would make it wrong: compilers that hang. If all of them are stopped, the
rule is silent.

Sources: flashinfer, DeepGEMM, torch.utils.cpp_extension.`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement},
	Suppresses: []rule.ID{"no-movement", "phase-moves", "weights-convert"},
	Eval: func(c *rule.Case) []rule.Finding {
		if upAlready(c) || c.Phases.Current == evidence.PhaseGraphCompile || inductorCompiles(c) {
			return nil
		}
		if len(c.Compilers.At) == 0 && c.Phases.Current != evidence.PhaseKernelBuild {
			return nil
		}
		return compileFinding(c, rule.KernelBuild, evidence.PhaseKernelBuild, "It builds kernels")
	},
	Against: func(c *rule.Case) *rule.Because {
		return &rule.Because{Says: "no compiler is among its processes"}
	},
}

// hardest is the compiler that works hardest; of equal ones the one that was
// found last, as drivers stand before what they drive.
func hardest(c *rule.Case, compilers []int) int {
	return slices.MaxFunc(compilers, func(a, b int) int {
		return cmp.Or(cmp.Compare(c.Moves.Demand(c.Processes[a].PID), c.Moves.Demand(c.Processes[b].PID)), cmp.Compare(a, b))
	})
}

// working: compilers use a processor, or come and go. One that does neither
// hangs.
func working(c *rule.Case, compilers []int) bool {
	for _, i := range compilers {
		if c.Moves.Demand(c.Processes[i].PID) >= leastShare {
			return true
		}
	}
	return c.Moves.Most(facts.Births) != nil || c.Moves.Most(facts.CPUChildren) != nil
}

// inductorCompiles: a compiler of the tree translates what torch inductor wrote,
// by a macro that it defines (torch/_inductor/cpp_builder.py). SGLang says
// nothing of that in its log, and does it in the warm-up.
func inductorCompiles(c *rule.Case) bool {
	for _, i := range c.Compilers.At {
		for _, a := range c.Processes[i].Argv {
			if strings.Contains(a, "TORCH_INDUCTOR_") {
				return true
			}
		}
	}
	return false
}

// compileFinding is nil if nothing works.
func compileFinding(c *rule.Case, cause rule.Cause, name evidence.Phase, says string) []rule.Finding {
	p := phase(c, name)
	f := rule.Finding{Cause: cause, Strength: rule.Likely, Phase: p, Next: again(c, p),
		FlipsIf: []string{"no process of the tree uses a processor any more"}}
	pid, share, demand, _ := busiest(c)
	children := c.Compilers.At
	var signs []string
	if c.Engine.Known == nil && !c.WeightsDone.Held {
		return nil // compilers run in shells, too
	}
	if c.Compilers.Stopped {
		return nil // ranks that spin for the outcome would look like work
	}
	if len(children) > 0 && working(c, children) {
		i := hardest(c, children)
		f.Cites = append(f.Cites, c.Cite("a compiler among its processes", "processes", i, "name"))
		signs = append(signs, fmt.Sprintf("%s (process %d) is at work%s", c.Processes[i].Name, c.Processes[i].PID, forWhom(c)))
	}
	if demand >= 0.1 {
		if m := c.Moves.Most(facts.CPUUser); m != nil {
			f.Cites = append(f.Cites, citeMove(c, m))
		}
		signs = append(signs, uses(c, pid, share, demand))
	}
	for _, k := range []facts.Kind{facts.LogContent, facts.BuildCache, facts.CPUChildren, facts.Births, facts.MemoryAnon, facts.Faults, facts.BytesOut} {
		if m := c.Moves.Most(k); m != nil && m.Delta > 0 && (k != facts.Faults || m.PerS >= 100) {
			f.Cites = append(f.Cites, citeMove(c, m))
			if len(signs) > 0 {
				f.Strength = rule.Strong
			}
			break
		}
	}
	if len(signs) == 0 {
		return nil
	}
	f.Cites = append(f.Cites, citeLog(c)...)
	waits, cites := waitForBuilder(c)
	f.Cites = append(f.Cites, cites...)
	f.Says = says + ": " + strings.Join(signs, ", ") + "." + waits + patience(p)
	if f.Strength == rule.Likely && len(children) == 0 {
		believe(c, &f, p, pid)
	}
	return []rule.Finding{f}
}

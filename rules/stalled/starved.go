package stalled

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Starved is a server that wants to work and does not get the processor or the
// memory to do it.
var Starved = rule.Rule{
	ID:      "starved",
	Verdict: rule.Stalled,
	Title:   "The server gets next to nothing of the processor or memory it wants",
	Doc: `Looks for a server that is not up, wants to run, and comes no nearer to an end:

 - its control group used its quota up in most periods (cpu.stat), and its
   threads got at most a fifth of the processor time they wanted (schedstat: time
   run against time waited);
 - without a quota: it is meant to serve, its threads get at most a fifth, and
   some task waits for a processor at least a third of the time (PSI, over 5 s): only
   strong if they get a tenth or less;
 - all tasks with work stand still for want of memory a fifth of the time (PSI
   memory full, over 5 s), and pages come back from swap or disk all the time.

It never outranks progress. Bytes, memory or log lines that would count on a
machine of its own (their rate divided by the share it gets) make it a loading
server with a warning. Processor time alone is no progress here: a loop that
spins for ever, throttled, looks the same as one that converts. With memory
short, bytes from the disk and mapped pages are the thrashing itself and do not
count either; a load that reads weights outranks this rule all the same.

What would make it wrong: work that shows in no counter and is slow but steady.

Sources: Documentation/scheduler/sched-bwc.rst, sched-stats.rst;
Documentation/accounting/psi.rst; proc_pid_stat(5) majflt.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedLimits},
	Suppresses: []rule.ID{"no-movement", "weights-convert", "phase-moves"},
	Eval:       evalStarved,
	Against: func(c *rule.Case) *rule.Because {
		l := &c.Limits
		if l.Ran+l.Waited < 0.05 {
			return nil
		}
		b := &rule.Because{Says: fmt.Sprintf("its threads get %.0f %% of the processor time they want", l.Gets()*100)}
		if m := c.Moves.Most(facts.ThreadRuns); m != nil {
			b.Cites = []rule.Cite{c.Cite("a thread that ran", m.At...)}
		}
		return b
	},
}

// starvedMS is the shortest window that says anything about a share.
const starvedMS = 2000

func evalStarved(c *rule.Case) []rule.Finding {
	early := c.Engine.Known != nil && c.Engine.Known.ListensEarly
	if c.Phases.Ready != nil || c.Phases.Stopping != nil || c.Door.Listens && !early || c.Moves.WindowMS < starvedMS {
		return nil // up, as far as is known: the warning speaks
	}
	l := &c.Limits
	meant := c.Engine.Known != nil || c.WeightsDone.Held
	f := rule.Finding{Cause: rule.Starved, Strength: rule.Strong, FlipsIf: []string{"it gets what it wants, or something moves in a longer look"}}
	switch {
	case l.HeldBack() && l.HardlyRuns() && facts.FurthestAtPace(&c.Moves, l.Gets()) == nil:
		f.Says, f.Cites = QuotaSays(c)
		f.Next = []rule.Step{raiseQuota(c)}
	case l.Crowded() && l.HardlyRuns() && meant && c.Moves.WindowMS >= longEnoughMS && facts.FurthestAtPace(&c.Moves, l.Gets()) == nil:
		f.Says, f.Cites = CrowdSays(c)
		f.Next = []rule.Step{{Do: "See who uses the processors", Risk: rule.RiskNone, Command: "top -b -n 1 | head -20"}}
		if l.Gets() > 0.1 {
			f.Strength = rule.Likely
		}
	case l.Thrashes() && c.Moves.WindowMS >= longEnoughMS && facts.FurthestAtPace(&c.Moves, 1, facts.DiskRead, facts.MemoryAnon, facts.MemoryFile, facts.MemoryShmem, facts.Faults) == nil:
		f.Says, f.Cites = MemorySays(c)
		f.Next = []rule.Step{{Do: "See who uses the memory", Risk: rule.RiskNone, Command: "free -m; ps -eo pid,rss,comm --sort=-rss | head -15"}}
	default:
		return nil
	}
	f.Says = "The server is starved: " + f.Says + ", and nothing comes nearer to an end."
	f.Culprits = []rule.Culprit{{PID: c.Target.PID, Name: nameOf(c, c.Target.PID), Where: "wants to run and may not"}}
	return []rule.Finding{f}
}

func nameOf(c *rule.Case, pid int) string {
	if i, ok := c.Tree.Index[pid]; ok {
		return c.Processes[i].Name
	}
	return ""
}

// QuotaSays is how a quota holds the tree back, with what it cites.
func QuotaSays(c *rule.Case) (string, []rule.Cite) {
	l, t := &c.Limits, c.Limits.Throttled
	limit := ""
	if t.QuotaCPUs > 0 {
		limit = fmt.Sprintf(" (%.2g processors)", t.QuotaCPUs)
	}
	g := &c.Kernel.Cgroups[t.Group]
	cites := []rule.Cite{c.Cite(fmt.Sprintf("periods in which %s was held back: %.0f %% of %.0f", g.Path, t.Share*100, t.Periods), t.At...)}
	return fmt.Sprintf("its threads get %.0f %% of the processor time they want (%.2f of %.2f processors), as the quota of control group %s%s held it back in %.0f %% of its periods",
		l.Gets()*100, l.Ran, l.Ran+l.Waited, g.Path, limit, t.Share*100), append(cites, citeRuns(c)...)
}

// CrowdSays is how others take the processors.
func CrowdSays(c *rule.Case) (string, []rule.Cite) {
	l := &c.Limits
	return fmt.Sprintf("its threads get %.0f %% of the processor time they want (%.2f of %.2f processors) on a crowded machine",
		l.Gets()*100, l.Ran, l.Ran+l.Waited), append([]rule.Cite{c.Cite(fmt.Sprintf("some task waited for a processor %.0f %% of the time", l.CPUPressure.Share*100), l.CPUPressure.At...)}, citeRuns(c)...)
}

// MemorySays is how memory is short.
func MemorySays(c *rule.Case) (string, []rule.Cite) {
	l := &c.Limits
	says := fmt.Sprintf("memory is so short that everything stood still %.0f %% of the time", l.MemoryPressure.Share*100)
	cites := []rule.Cite{c.Cite("time in which all tasks waited for memory, in microseconds", l.MemoryPressure.At...)}
	if l.SwapInAt != nil {
		says += fmt.Sprintf(", %.0f pages a second came back from swap", l.SwapInPerS)
		cites = append(cites, c.Cite("pages read back from swap", l.SwapInAt...))
	}
	if l.MajorFaultsPerS >= 1 {
		says += fmt.Sprintf(", %.0f page faults a second waited for the disk", l.MajorFaultsPerS)
	}
	return says, cites
}

func citeRuns(c *rule.Case) []rule.Cite {
	if m := c.Moves.Most(facts.ThreadRuns); m != nil {
		return []rule.Cite{c.Cite("how often its busiest thread ran", m.At...)}
	}
	return nil
}

// raiseQuota is the command that lifts the limit, for whoever may.
func raiseQuota(c *rule.Case) rule.Step {
	g := &c.Kernel.Cgroups[c.Limits.Throttled.Group]
	s := rule.Step{Do: "Raise or lift its processor quota", Risk: rule.RiskLow, Command: "cat " + rule.Quoted(g.Dir+"/cpu.max")}
	if g.Version == 1 {
		s.Command = "cat " + rule.Quoted(g.Dir+"/cpu.cfs_quota_us")
	}
	for i := range c.Processes {
		if id := c.Processes[i].Container; id != "" {
			return rule.Step{Do: s.Do, Risk: s.Risk, Command: "docker update --cpus N " + id[:min(12, len(id))]}
		}
	}
	s.Do += "; it stands here"
	return s
}

package broken

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// OOMKilled is a server that lost a part because memory ran out.
var OOMKilled = rule.Rule{
	ID:      "oom-killed",
	Verdict: rule.Broken,
	Title:   "The kernel killed a process of the server for want of memory",
	Doc: `Looks for a process of the tree that has ended, and for the kernel's own word that
it killed one for memory: its log names the process since the tree began, or
the counter oom_kill of the process's memory group grew while whyhang looked, or
stands above zero in a group that holds nothing but this server.

Signal 9 alone is never taken for it: people and supervisors send it too, and
exit code 137 says no more. If the kernel's log was read back to the tree's start
and does not name the process, it was somebody else, whatever the counter says.

A part that the engine needs, or a zombie whose part cannot be told while one is
missing, makes it strong, proved if the log names it. Another
child is only likely to matter: a correct answer outranks it.

What would make it wrong: a counter that counts another process of the same
group, where the kernel's log may not be read.

Sources: mm/oom_kill.c (__oom_kill_process); Documentation/admin-guide/cgroup-v2.rst
(memory.events), cgroup-v1/memory.rst (memory.oom_control); wait(2).`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement, evidence.NeedLimits},
	Suppresses: []rule.ID{"dead-child", "no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word"},
	Eval:       evalOOMKilled,
	Against: func(c *rule.Case) *rule.Because {
		if c.Kernel.Log != nil && c.Kernel.Log.Complete && len(c.Kernel.Log.Kills) == 0 {
			return &rule.Because{Says: "the kernel's log names no process killed for memory since the server began"}
		}
		if n := len(c.Frames) - 1; c.Frames[n].Kernel != nil && c.Frames[n].Kernel.OOMKills != nil && *c.Frames[n].Kernel.OOMKills == 0 {
			return &rule.Because{Says: "the kernel has killed nothing for memory since the machine started",
				Cites: []rule.Cite{c.Cite("oom_kill of /proc/vmstat", "frames", n, "kernel", "oom_kills")}}
		}
		return nil
	},
}

// sigKill is the signal of the kernel's killer.
const sigKill = 9

func evalOOMKilled(c *rule.Case) []rule.Finding {
	var heads, others []rule.Finding
	deadHeads := false
	for i := range c.Processes {
		p := &c.Processes[i]
		if p.PID == c.Target.PID || c.Tree.Alive[p.PID] {
			continue
		}
		part, missing, head := partOf(c, p)
		deadHeads = deadHeads || head
		if w := waitStatus(c, p); w != nil && *w&0x7f != sigKill {
			continue // it ended another way
		}
		f, ok := killedForMemory(c, i, part, missing)
		switch {
		case !ok:
		case head:
			heads = append(heads, f)
		case c.Engine.Known == nil && p.PPID == c.Target.PID && (waitStatus(c, p) == nil || zombieThroughout(c, p.PID) || f.Strength == rule.Proved):
			f.Strength = rule.Likely
			others = append(others, f)
		}
	}
	if deadHeads {
		return heads // another part's end is not explained by a helper's
	}
	return others
}

// partOf says what a dead process was to the server, and whether the engine
// needs it. One that had ended before whyhang came shows no command line: if a
// part is missing as well, it was that part.
func partOf(c *rule.Case, p *evidence.Process) (what, missing string, head bool) {
	if c.Engine.Roles[p.PID].Head {
		return c.Engine.Known.Name + "'s " + c.Engine.RoleOf(p), "", true
	}
	what = fmt.Sprintf("its child %q", p.Name)
	if len(p.Argv) > 0 {
		return what, "", false
	}
	for _, h := range c.Heads {
		if h.Missing() > 0 {
			return what, fmt.Sprintf(", while %s's %s is missing", c.Engine.Known.Name, h.Role), true
		}
	}
	return what, "", false
}

// killedForMemory is the finding about one dead process, if the kernel says
// that memory was why.
func killedForMemory(c *rule.Case, index int, what, missing string) (rule.Finding, bool) {
	p := &c.Processes[index]
	f := rule.Finding{Cause: rule.OOMKilled, Strength: rule.Strong,
		Culprits: []rule.Culprit{{PID: p.PID, Name: p.Name, Where: "killed for want of memory"}},
		FlipsIf:  []string{"the server starts a new process in its place"},
		Next: []rule.Step{
			{Do: "See what the kernel wrote", Risk: rule.RiskNone, Command: "sudo dmesg -T | grep -iE 'oom|killed process'"},
			{Do: "Give it more memory or less to hold (a smaller cache, fewer workers), then restart it", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", c.Target.PID)},
		}}
	because := ""
	switch n := killOf(c, p); {
	case n >= 0:
		k := &c.Kernel.Log.Kills[n]
		f.Strength = rule.Proved
		f.Cites = []rule.Cite{c.Cite("the kernel's log", "kernel", "log", "kills", n, "text")}
		because = "the kernel's log names it"
		if k.AnonBytes != nil {
			because += fmt.Sprintf(" (it held %s)", facts.Bytes(float64(*k.AnonBytes)))
		}
		if k.Limit {
			because += ", its control group was at its memory limit"
		}
	case c.Kernel.Log != nil && c.Kernel.Log.Complete && c.Kernel.Log.SamePIDs && !diedInSight(c, p):
		return f, false // the log is whole and does not name it
	default:
		cite, says := counted(c, p)
		if says == "" {
			return f, false
		}
		f.Cites, because = []rule.Cite{cite}, says
	}
	f.Cites = append(f.Cites, citeState(c, index))
	f.Says = fmt.Sprintf("A part of the server was killed for want of memory: %s (process %d)%s; %s.", what, p.PID, missing, because)
	return f, true
}

// slack is how far the clocks of the kernel's log and of process start times may
// be apart.
const slack = 5 * time.Second

// killOf is the kernel's line about a process, -1 if there is none. PIDs are
// used again, so the line may not be older than the process. The name in it may
// be a thread's.
func killOf(c *rule.Case, p *evidence.Process) int {
	if c.Kernel.Log == nil || !c.Kernel.Log.SamePIDs {
		return -1
	}
	for n := range c.Kernel.Log.Kills {
		k := &c.Kernel.Log.Kills[n]
		if k.PID == p.PID && !k.At.Before(p.Started.Add(-slack)) {
			return n
		}
	}
	return -1
}

// diedInSight: a look at the groups came before its end. Otherwise the kernel's
// log, which was read later, would name it.
func diedInSight(c *rule.Case, p *evidence.Process) bool {
	for n := range c.Frames {
		if c.Frames[n].Kernel == nil {
			continue
		}
		if j := facts.ProcessAt(&c.Frames[n], p.PID); j >= 0 && facts.Lives(c.Frames[n].Processes[j].State) {
			return true
		}
	}
	return false
}

// counted cites the counter of the memory group that says that a process of it
// was killed; "" if none does.
func counted(c *rule.Case, p *evidence.Process) (rule.Cite, string) {
	last := -1
	for n := range c.Frames {
		if c.Frames[n].Kernel != nil {
			last = n
		}
	}
	if last < 0 {
		return rule.Cite{}, ""
	}
	k := c.Frames[last].Kernel
	best := -1
	for j := range k.Cgroups {
		g := facts.GroupOf(c.Snapshot, &k.Cgroups[j])
		if g == nil || k.Cgroups[j].OOMKills == nil || !memberOrParent(c, g, p) {
			continue
		}
		if best < 0 || len(g.Dir) > len(facts.GroupOf(c.Snapshot, &k.Cgroups[best]).Dir) {
			best = j
		}
	}
	if best < 0 {
		return rule.Cite{}, ""
	}
	g, now := facts.GroupOf(c.Snapshot, &k.Cgroups[best]), *k.Cgroups[best].OOMKills
	cite := c.Cite("processes of "+g.Path+" killed for memory", "frames", last, "kernel", "cgroups", best, "oom_kills")
	if before := firstCount(c, k.Cgroups[best].Cgroup); before != nil && now > *before && diedInSight(c, p) {
		return cite, "it ended while whyhang looked, and the count of kills for memory in its control group " + g.Path + " grew"
	}
	own := g.Foreign != nil && *g.Foreign == 0 || p.Container != "" && strings.Contains(g.Path, p.Container)
	w := waitStatus(c, p)
	if now > 0 && own && g.Path != "/" && w != nil && !diedInSight(c, p) {
		return cite, fmt.Sprintf("it ended by signal 9, and its control group %s, which holds nothing else, counts %d killed for memory", g.Path, now)
	}
	return rule.Cite{}, ""
}

// memberOrParent: version 1 does not tell the groups of a process that has
// ended. Children begin in the groups of their parents.
func memberOrParent(c *rule.Case, g *evidence.Cgroup, p *evidence.Process) bool {
	if slices.Contains(g.PIDs, p.PID) && (g.Path != "/" || facts.Lives(p.State)) {
		return true
	}
	return !facts.Lives(p.State) && slices.Contains(g.PIDs, p.PPID)
}

// firstCount is the first count of a group.
func firstCount(c *rule.Case, group int) *uint64 {
	for n := range c.Frames {
		if k := c.Frames[n].Kernel; k != nil {
			for j := range k.Cgroups {
				if k.Cgroups[j].Cgroup == group && k.Cgroups[j].OOMKills != nil {
					return k.Cgroups[j].OOMKills
				}
			}
		}
	}
	return nil
}

package stalled

import (
	"fmt"
	"path"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Frozen is a server whose control group somebody has frozen.
var Frozen = rule.Rule{
	ID:      "frozen",
	Verdict: rule.Stalled,
	Title:   "A process of the server is in a frozen control group (docker pause, systemctl freeze)",
	Doc: `Looks for processes whose control group, or one above it, is frozen in every look:
freezer.state FROZEN in version 1, "frozen 1" in cgroup.events of version 2. A
frozen thread does nothing until its group is thawed, and everything that waits
for it waits too. The letter of its state does not tell: it is D in version 1
and S, like any sleeper, in version 2.

The report names the group that was told to freeze, which may stand above the
process's own, and the command that thaws it. FREEZING means that some thread
has not arrived (it is stuck in the kernel): only likely.

What would make it wrong: a thaw the moment after; a checkpoint or a snapshot of
the container, which freezes it for seconds.

Sources: Documentation/admin-guide/cgroup-v1/freezer-subsystem.rst,
Documentation/admin-guide/cgroup-v2.rst (cgroup.freeze, cgroup.events).`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement, evidence.NeedLimits},
	Suppresses: append([]rule.ID{"phase-moves", "starved"}, othersMove...),
	Eval:       evalFrozen,
	Against: func(c *rule.Case) *rule.Because {
		for n := len(c.Frames) - 1; n >= 0; n-- {
			k := c.Frames[n].Kernel
			if k == nil {
				continue
			}
			for j := range k.Cgroups {
				if k.Cgroups[j].Freezer == evidence.Thawed {
					return &rule.Because{Says: "no control group of the tree is frozen",
						Cites: []rule.Cite{c.Cite("its freezer", "frames", n, "kernel", "cgroups", j, "freezer")}}
				}
			}
			return nil
		}
		return nil
	},
}

// evalFrozen gives one finding for each group that was told to freeze, about
// the process that matters most.
func evalFrozen(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	at := map[string]int{} // findings by directory
	count := map[string]int{}
	for i := range c.Processes {
		p := &c.Processes[i]
		if !c.Tree.Alive[p.PID] {
			continue
		}
		frame, group, state := frozenThroughout(c, p.PID)
		if state == "" {
			continue
		}
		dir := c.Kernel.Cgroups[c.Frames[frame].Kernel.Cgroups[group].Cgroup].Dir
		count[dir]++
		n, seen := at[dir]
		if seen && (matters(c, found[n].Culprits[0].PID) || !matters(c, p.PID)) {
			continue
		}
		f := freezeFinding(c, p, frame, group, state)
		if seen {
			found[n] = f
			continue
		}
		at[dir] = len(found)
		found = append(found, f)
	}
	for dir, n := range at {
		if others := count[dir] - 1; others > 0 {
			found[n].Victims = others
		}
	}
	return found
}

// frozenThroughout is FROZEN or FREEZING if every look at the groups shows the
// process so, two looks at least; frame and group are where the last one stands.
func frozenThroughout(c *rule.Case, pid int) (frame, group int, state evidence.Freezer) {
	looks := 0
	for n := range c.Frames {
		if c.Frames[n].Kernel == nil {
			continue
		}
		j, now := facts.FrozenAt(c.Snapshot, n, pid)
		if now == "" {
			return 0, 0, ""
		}
		if state != evidence.Freezing {
			state = now
		}
		looks++
		frame, group = n, j
	}
	if looks < 2 {
		return 0, 0, ""
	}
	return frame, group, state
}

func freezeFinding(c *rule.Case, p *evidence.Process, frame, group int, state evidence.Freezer) rule.Finding {
	g := facts.GroupOf(c.Snapshot, &c.Frames[frame].Kernel.Cgroups[group])
	pausedBy, command := thaw(c, p, g)
	f := rule.Finding{Cause: rule.Paused, Strength: rule.Proved,
		Says:     fmt.Sprintf("The server is frozen: process %d (%s) is in the frozen control group %s%s and does nothing until it is thawed.", p.PID, c.Engine.RoleOf(p), g.Path, pausedBy),
		Culprits: []rule.Culprit{{PID: p.PID, Name: p.Name, Where: "frozen with the control group " + g.Path}},
		Cites:    []rule.Cite{c.Cite("freezer of "+g.Path+" in every look", "frames", frame, "kernel", "cgroups", group, "freezer")},
		FlipsIf:  []string{"the group is thawed"},
		Next:     []rule.Step{{Do: "Find out who froze it and why, then thaw it", Risk: rule.RiskLow, Command: command}},
	}
	if told := c.Frames[frame].Kernel.Cgroups[group].FreezeSelf; told == nil || !*told {
		f.Next[0].Do = "The group that was told to freeze stands above it and is not visible from here; thaw that one, on the host"
		f.Next[0].Command = ""
	}
	if state == evidence.Freezing {
		f.Strength = rule.Likely
		f.Says = fmt.Sprintf("The server is being frozen: control group %s was told to freeze%s, and some thread of it has not arrived.", g.Path, pausedBy)
	}
	if !matters(c, p.PID) {
		// A helper that is frozen need not concern the server.
		f.Strength = rule.Likely
		f.Says = strings.Replace(f.Says, "The server is", "A process beside the server is", 1)
	}
	return f
}

// thaw is who looks to have frozen a group, in words, and the command that
// thaws it.
func thaw(c *rule.Case, p *evidence.Process, g *evidence.Cgroup) (by, command string) {
	id := p.Container
	if id != "" && strings.Contains(g.Path, id) {
		short := id[:min(12, len(id))]
		switch {
		case strings.Contains(g.Path, "libpod"):
			return ", as podman pause does it,", "podman unpause " + short
		case strings.Contains(g.Path, "cri-containerd"):
			return ", as a pause of its container does it,", "sudo ctr -n k8s.io tasks resume " + id
		case strings.Contains(g.Path, "docker"):
			return ", as docker pause does it,", "docker unpause " + short
		}
	}
	if unit := path.Base(g.Path); g.Version == 2 && (strings.HasSuffix(unit, ".service") || strings.HasSuffix(unit, ".scope") || strings.HasSuffix(unit, ".slice")) {
		return ", as systemctl freeze does it,", "sudo systemctl thaw " + rule.Quoted(unit)
	}
	word, file := "0", g.Dir+"/cgroup.freeze"
	if g.Version == 1 {
		word, file = "THAWED", g.Dir+"/freezer.state"
	}
	if c.Host.UID == 0 {
		return "", fmt.Sprintf("echo %s > %s", word, rule.Quoted(file))
	}
	return "", fmt.Sprintf("echo %s | sudo tee %s", word, rule.Quoted(file))
}

package broken

import (
	"fmt"

	"github.com/whyhang/whyhang/rules/rule"
)

// LeftBehind is a part of a server whose server is gone.
var LeftBehind = rule.Rule{
	ID:      "left-behind",
	Verdict: rule.Broken,
	Title:   "A part of a server was left behind: the process that started it is gone",
	Doc: `Looks for a process that was asked for, or stands above all others of its engine,
and that is a part which never runs alone: a scheduler, a worker, an engine core, a
detokenizer. Its parent is a program that takes in orphans (init, systemd, tini, a
shell as first process of a container). Such parts are started by Python processes
only; so the one that started it has ended. The part serves nobody, and still holds
GPU memory, ports and shared memory, which keep the next server from starting.

A parent that is a program of its own may be one that has the engine as a library:
nothing is claimed then.

What would make it wrong: an init program that starts parts of an engine itself.

Sources: the engines' process titles; prctl(2) PR_SET_CHILD_SUBREAPER: who becomes
the parent of orphans.`,
	Suppresses: []rule.ID{"no-movement", "lost-wakeup"},
	Eval:       evalLeftBehind,
	Against: func(c *rule.Case) *rule.Because {
		if c.Target.ParentPID == 0 || len(c.Processes) == 0 || !neverAlone[c.Engine.Roles[c.Processes[0].PID].Name] {
			return nil
		}
		return &rule.Because{Says: fmt.Sprintf("its parent, process %d (%s), may be the program that runs it", c.Target.ParentPID, c.Target.ParentName),
			Cites: []rule.Cite{c.Cite("its parent", "target", "parent_name")}}
	},
}

// neverAlone are parts that another process of the engine starts.
var neverAlone = map[string]bool{"scheduler": true, "worker": true, "engine-core": true, "detokenizer": true, "data-parallel-controller": true}

// reapers are programs that become the parents of orphans, as the kernel's names
// of them (comm, 15 bytes).
var reapers = map[string]bool{"init": true, "systemd": true, "tini": true, "docker-init": true, "dumb-init": true, "catatonit": true, "s6-svscan": true,
	"runsvdir": true, "containerd-shim": true, "conmon": true, "pause": true, "supervisord": true, "bash": true, "sh": true, "dash": true, "sleep": true, "tail": true}

func evalLeftBehind(c *rule.Case) []rule.Finding {
	if len(c.Processes) == 0 || c.Engine.Known == nil {
		return nil
	}
	root := &c.Processes[0]
	if !neverAlone[c.Engine.Roles[root.PID].Name] || root.PPID != c.Target.ParentPID || !reapers[c.Target.ParentName] {
		return nil
	}
	return []rule.Finding{{Cause: rule.DeadChild, Strength: rule.Strong,
		Says: fmt.Sprintf("It was left behind: %s's %s has lost the server that started it, its parent is now process %d (%s).",
			c.Engine.Known.Name, c.Part(root.PID), c.Target.ParentPID, c.Target.ParentName),
		Culprits: []rule.Culprit{{PID: root.PID, Name: root.Name, Where: "left behind by its server"}},
		Cites:    []rule.Cite{c.Cite("the process's title", "processes", 0, "name"), c.Cite("its parent takes in orphans", "target", "parent_name")},
		FlipsIf:  []string{"its parent is the program that started it"},
		Next: []rule.Step{
			{Do: "See what it holds", Risk: rule.RiskNone, Command: fmt.Sprintf("ss -ltnp | grep pid=%d; nvidia-smi --query-compute-apps=pid,used_memory --format=csv | grep %d", root.PID, root.PID)},
			{Do: "End it, to give back its ports and memory", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", root.PID)},
		}}}
}

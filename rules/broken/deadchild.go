package broken

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// DeadChild is a server that has lost a part it cannot serve without.
var DeadChild = rule.Rule{
	ID:      "dead-child",
	Verdict: rule.Broken,
	Title:   "A process the server cannot do without has ended",
	Doc: `Looks for a process of the tree that plays a part the engine needs (a
scheduler, an engine core, a worker, a detokenizer) and that is a zombie or
vanished while whyhang looked. The others then wait for it for ever, or for the
minutes of a time-out, and the HTTP side may go on saying that all is well.

A child that shows no part by a title is counted as lost if it was killed by a
signal, was not reaped over the whole window, and fewer processes live than the
command line asks for.

A zombie child of a server whose engine is not known, killed by a signal and
not reaped over the whole window, is only likely to matter: a correct answer
outranks it.

What would make it wrong: an engine that restarts its workers, looked at in the
moment between; a helper that the engine's file here wrongly counts as needed.

Sources: proc_pid_stat(5) fields 3 and 52; the engines' process titles.`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement},
	Suppresses: []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word"},
	Eval:       evalDeadChild,
	Against:    againstDeadChild,
}

func evalDeadChild(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	for i := range c.Processes {
		p := &c.Processes[i]
		if p.PID == c.Target.PID || c.Tree.Alive[p.PID] {
			continue
		}
		role, known := c.Engine.Roles[p.PID]
		switch {
		case known && (complete(c, role.Name) || p.StartTicks < c.Processes[0].StartTicks):
			// Another lives in its place, or it is older than the server: the
			// first process of a container inherits the zombies of others.
		case known && role.Head:
			found = append(found, lost(c, i, c.Engine.Known.Name+"'s "+c.Engine.RoleOf(p), rule.Strong))
		case c.Engine.Untitled[p.PID] && mayBePart(c, p) && killed(c, p) && zombieThroughout(c, p.PID) && short(c):
			s := rule.Likely
			if c.Phases.Ready != nil || facts.Furthest(&c.Moves) == nil {
				s = rule.Strong // at the start not all parts need be there yet
			}
			found = append(found, lost(c, i, fmt.Sprintf("one of %s's processes, %q", c.Engine.Known.Name, p.Name), s))
		case c.Engine.Known == nil && p.PPID == c.Target.PID && killed(c, p) && zombieThroughout(c, p.PID):
			found = append(found, lost(c, i, fmt.Sprintf("its child %q", p.Name), rule.Likely))
		}
	}
	return found
}

// mayBePart: by its name it runs what the engine's parts run, and is no compiler
// or other tool.
func mayBePart(c *rule.Case, p *evidence.Process) bool {
	main := c.Tree.Index[c.Engine.MainPID]
	return strings.HasPrefix(p.Name, "python") || p.Name == "pt_main_thread" || p.Name == c.Processes[main].Name
}

// short: fewer processes live than the command line asks for, whatever part
// they play.
func short(c *rule.Case) bool {
	want, have := 0, 0
	for _, h := range c.Heads {
		want += h.Expected
		have += len(h.Living)
	}
	for pid, untitled := range c.Engine.Untitled {
		if untitled && c.Tree.Alive[pid] {
			have++
		}
	}
	return have < want
}

// lost is the finding about one dead process.
func lost(c *rule.Case, index int, what string, strength rule.Strength) rule.Finding {
	p := &c.Processes[index]
	how := facts.EndedBy(waitStatus(c, p))
	if how == "" {
		how = "ended"
	}
	f := rule.Finding{
		Cause:    rule.DeadChild,
		Strength: strength,
		Says:     fmt.Sprintf("A part of the server is dead: %s (process %d) %s; what waits for it will not go on.", what, p.PID, how),
		Culprits: []rule.Culprit{{PID: p.PID, Name: p.Name, Where: how}},
		Cites:    []rule.Cite{citeState(c, index)},
		FlipsIf:  []string{"the server starts a new process in its place"},
		Next: []rule.Step{
			{Do: "See whether the kernel killed it", Risk: rule.RiskNone, Command: fmt.Sprintf("sudo dmesg -T | grep -iE 'oom|killed process %d|segfault|Xid'", p.PID)},
			{Do: "Look in the log for the first error before it ended, then restart the server", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", c.Target.PID)},
		},
	}
	if role, ok := c.Engine.Roles[p.PID]; ok {
		for _, h := range c.Heads {
			if h.Role == role.Name {
				living := fmt.Sprintf("%d living", len(h.Living))
				if h.Untitled > 0 {
					// Parts that never took a title look like any other.
					living += fmt.Sprintf(" by their titles, %d without one", h.Untitled)
				}
				f.Cites = append(f.Cites, c.Cite(fmt.Sprintf("%d × %s needed (%s), %s", h.Expected, h.Role, h.Because, living), "processes", index, "name"))
			}
		}
	}
	return f
}

// waitStatus is the wait status of a process that has ended, from the last
// frame that knows it.
func waitStatus(c *rule.Case, p *evidence.Process) *int {
	for n := len(c.Frames) - 1; n >= 0; n-- {
		if j := facts.ProcessAt(&c.Frames[n], p.PID); j >= 0 && c.Frames[n].Processes[j].WaitStatus != nil {
			return c.Frames[n].Processes[j].WaitStatus
		}
	}
	return p.WaitStatus
}

// killed tells whether a process was ended by a signal.
func killed(c *rule.Case, p *evidence.Process) bool {
	w := waitStatus(c, p)
	return w != nil && *w&0x7f != 0
}

// zombieThroughout tells whether every frame shows the process as a zombie: a
// parent that reaps its children lets none stand for long.
func zombieThroughout(c *rule.Case, pid int) bool {
	for n := range c.Frames {
		j := facts.ProcessAt(&c.Frames[n], pid)
		if j < 0 || c.Frames[n].Processes[j].State != "Z" {
			return false
		}
	}
	return len(c.Frames) >= 2
}

// citeState cites the last state letter that was seen of a process.
func citeState(c *rule.Case, index int) rule.Cite {
	pid := c.Processes[index].PID
	for n := len(c.Frames) - 1; n >= 0; n-- {
		if j := facts.ProcessAt(&c.Frames[n], pid); j >= 0 {
			state := c.Frames[n].Processes[j].State
			says := fmt.Sprintf("process %d is a zombie", pid)
			if state == "" {
				says = fmt.Sprintf("process %d has vanished", pid)
			}
			return c.Cite(says, "frames", n, "processes", j, "state")
		}
	}
	return c.Cite(fmt.Sprintf("process %d is a zombie", pid), "processes", index, "state")
}

func againstDeadChild(c *rule.Case) *rule.Because {
	living := 0
	for i := range c.Processes {
		if c.Tree.Alive[c.Processes[i].PID] {
			living++
		}
	}
	b := &rule.Because{Says: fmt.Sprintf("all %d processes of the tree live", living)}
	if living == 1 {
		b.Says = "its only process lives"
	}
	if n := len(c.Processes) - living; n > 0 {
		b.Says = fmt.Sprintf("%d processes live; %d that ended are no parts the server needs", living, n)
	}
	last := len(c.Frames) - 1
	if last >= 0 && len(c.Frames[last].Processes) > 0 {
		b.Cites = append(b.Cites, c.Cite("state of the root process", "frames", last, "processes", 0, "state"))
	}
	return b
}

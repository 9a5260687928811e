package stalled

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Paused is a server that somebody has stopped.
var Paused = rule.Rule{
	ID:      "paused",
	Verdict: rule.Stalled,
	Title:   "A process of the server is stopped by a signal or held by a tracer",
	Doc: `Looks for processes in state T (stopped by SIGSTOP, SIGTSTP or a terminal) or
t (stopped by a tracer) in every look. Such a process does nothing until it is
continued, and everything that waits for it waits too. Profilers and the
engines' own watchdogs leave processes in this state as well as people do.
A part that is stopped outranks what the others still do: without it they come to
no end. A script that started the server is no part of it.

A tracer that is attached while the threads run is no pause.

What would make it wrong: a stop that ends the moment after; the report says
when it was seen.

Sources: proc_pid_stat(5) field 3, proc_pid_status(5) TracerPid, signal(7).`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement},
	Suppresses: append([]rule.ID{"phase-moves"}, othersMove...),
	Eval:       evalPaused,
	Against:    againstPaused,
}

// othersMove are the rules that a part which stands still silences: about the
// silence of the server, and about what its other parts still do.
var othersMove = []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck", "ready-by-its-word", "weights-read", "weights-convert", "graph-compile", "kernel-build",
	"waits-for-build", "download", "says-loading", "waiting-for-peer"}

func evalPaused(c *rule.Case) []rule.Finding {
	var found []rule.Finding
	stopped := stoppedBySignal(c)
	for i := range c.Processes {
		p := &c.Processes[i]
		state := stoppedThroughout(c, p.PID)
		if state == "" {
			continue
		}
		last := len(c.Frames) - 1
		cite := c.Cite("state of process "+fmt.Sprint(p.PID)+" in every look", "frames", last, "processes", facts.ProcessAt(&c.Frames[last], p.PID), "state")
		f := rule.Finding{Cause: rule.Paused, Strength: rule.Strong, Cites: []rule.Cite{cite},
			FlipsIf: []string{"the process is continued"}}
		who := fmt.Sprintf("process %d (%s)", p.PID, c.Engine.RoleOf(p))
		if state == "t" {
			f.Says = fmt.Sprintf("The server is held: %s is stopped by its tracer, %s.", who, tracer(p))
			f.Culprits = []rule.Culprit{{PID: p.TracerPID, Name: p.TracerName, Where: fmt.Sprintf("traces process %d", p.PID)}}
			f.Next = []rule.Step{{Do: "Ask whoever runs the tracer to detach; ending it continues the server", Risk: rule.RiskLow, Command: fmt.Sprintf("kill %d", p.TracerPID)}}
			if p.TracerPID != 0 {
				f.Strength = rule.Proved
				f.Cites = append(f.Cites, c.Cite("its tracer", "processes", i, "tracer_pid"))
			}
		} else {
			f.Says = fmt.Sprintf("The server is paused: %s is stopped by a signal and does nothing until it is continued.", who)
			f.Culprits = []rule.Culprit{{PID: p.PID, Name: p.Name, Where: "stopped by a signal (state T)"}}
			f.Next = []rule.Step{{Do: stopped.do(), Risk: rule.RiskLow, Command: "kill -CONT " + stopped.words()}}
			if n := len(stopped) - 1; n == 1 {
				f.Says += " So is one other process of it."
			} else if n > 1 {
				f.Says += fmt.Sprintf(" So are %d other processes of it.", n)
			}
			// Nothing but a signal puts a process into state T, and nothing but
			// SIGCONT takes it out.
			f.Strength = rule.Proved
		}
		if !matters(c, p.PID) {
			// A helper that is stopped need not concern the server.
			f.Strength = rule.Likely
			f.Says = strings.Replace(f.Says, "The server is", "A process beside the server is", 1)
		}
		found = append(found, f)
	}
	return found
}

// pids are processes in the order of the tree.
type pids []int

func (p pids) words() string { return strings.Trim(fmt.Sprint([]int(p)), "[]") }

func (p pids) do() string {
	if len(p) == 1 {
		return "Continue it"
	}
	return "Continue them"
}

// stoppedBySignal are all of them: Ctrl-Z in a terminal stops every process of
// the job, and to continue one of them does not help the others.
func stoppedBySignal(c *rule.Case) pids {
	var all pids
	for i := range c.Processes {
		if stoppedThroughout(c, c.Processes[i].PID) == "T" {
			all = append(all, c.Processes[i].PID)
		}
	}
	return all
}

// matters: the process is the server itself, answers its door, is a part the
// engine cannot do without, or one of its compilers, all of which are stopped.
func matters(c *rule.Case, pid int) bool {
	// A script above the server may stand still, and the server go on.
	target := pid == c.Target.PID && c.Engine.MainPID == 0
	door := c.Door.Listener >= 0 && pid == c.Sockets.Listeners[c.Door.Listener].PID
	return target || door || pid == c.Engine.MainPID || c.Engine.Roles[pid].Head ||
		c.Compilers.Stopped && slices.ContainsFunc(c.Compilers.At, func(i int) bool { return c.Processes[i].PID == pid }) ||
		c.Engine.Untitled[pid] && slices.ContainsFunc(c.Heads, func(h facts.HeadCount) bool { return len(h.Living) < h.Expected })
}

// stoppedThroughout is T or t if every look shows the process in that state.
func stoppedThroughout(c *rule.Case, pid int) string {
	state := ""
	for n := range c.Frames {
		j := facts.ProcessAt(&c.Frames[n], pid)
		if j < 0 {
			return ""
		}
		now := c.Frames[n].Processes[j].State
		if now != "T" && now != "t" || state != "" && now != state {
			return ""
		}
		state = now
	}
	return state
}

func tracer(p *evidence.Process) string {
	if p.TracerPID == 0 {
		return "which is not known"
	}
	return fmt.Sprintf("process %d (%s)", p.TracerPID, p.TracerName)
}

func againstPaused(c *rule.Case) *rule.Because {
	last := len(c.Frames) - 1
	for i := range c.Processes {
		if t := c.Processes[i].TracerPID; t != 0 {
			return &rule.Because{Says: fmt.Sprintf("process %d traces the server, and its threads run all the same", t),
				Cites: []rule.Cite{c.Cite("tracer", "processes", i, "tracer_pid")}}
		}
	}
	if len(c.Frames[last].Processes) == 0 {
		return nil
	}
	return &rule.Because{Says: "no process is stopped or traced",
		Cites: []rule.Cite{c.Cite("state of the root process", "frames", last, "processes", 0, "state")}}
}

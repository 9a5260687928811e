package stalled

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// NoMovement is a server that ought to start and does nothing.
var NoMovement = rule.Rule{
	ID:      "no-movement",
	Verdict: rule.Stalled,
	Title:   "Nothing moves towards an end",
	Doc: `Looks for a server that is not up (it does not listen) and in which, over the
whole window, nothing came further: no bytes, no memory, no log line that says
something new, no processor time beyond that of timers. It must be meant to
serve: a known engine, or weight files in its hands.

This is not a deadlock: nothing is proved, and some healthy waits look the same
(an autotuner at rest, a rank that waits for a slower one on another host).
Heartbeat lines and retries are not movement, and processor time alone is not
either: a spinning thread is busy for ever.

What would make it wrong: work that shows in none of the counters (direct reads
into GPU memory), or a window shorter than the pause of a slow store.

Sources: proc_pid_stat(5), proc_pid_io(5), proc_pid_status(5).`,
	Needs: []evidence.Need{evidence.NeedMovement, evidence.NeedSockets, evidence.NeedOpenFiles},
	Eval:  evalNoMovement,
	Against: func(c *rule.Case) *rule.Because {
		if m := facts.Furthest(&c.Moves); m != nil {
			return &rule.Because{Says: "something moves: " + facts.MoveSays(m), Cites: []rule.Cite{c.Cite(string(m.Kind), m.At...)}}
		}
		return nil
	},
}

// longEnoughMS is the shortest window in which "nothing moved" says anything.
const longEnoughMS = 5000

func evalNoMovement(c *rule.Case) []rule.Finding {
	if len(c.Unmet([]evidence.Need{evidence.NeedOpenFiles})) > 0 {
		return nil // what it holds or reads may be hidden
	}
	meant := c.Engine.Known != nil || c.WeightsDone.Held
	if !meant || c.Door.Listens && !c.Door.Closed || c.Moves.WindowMS < longEnoughMS {
		return nil
	}
	if facts.Furthest(&c.Moves) != nil {
		return nil
	}
	for _, g := range facts.GPUStates(c.Snapshot, &c.Moves) {
		if g.Does == facts.GPUWorks {
			return nil
		}
	}
	var cpu float64
	for i := range c.Processes {
		cpu += c.Moves.Demand(c.Processes[i].PID)
	}
	last := len(c.Frames) - 1
	f := rule.Finding{Cause: rule.NoMovement, Strength: rule.Likely,
		Says: fmt.Sprintf("Nothing moved in %.0f s: no bytes, no memory, no new log content, %.0f %% of a processor.", c.Moves.WindowMS/1000, cpu*100),
		Cites: []rule.Cite{c.Cite("length of the window in ms", "frames", last, "since_ms"),
			c.Cite("user CPU of the root process in ms, as at the beginning", "frames", last, "processes", 0, "user_ms")},
		FlipsIf: []string{"any counter moves in a longer look"},
		Next:    []rule.Step{{Do: "Look longer", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --window 60s", c.Target.PID)}},
	}
	// A rank of another host's server has no door of its own to be judged by.
	if c.Engine.Command.Int(0, "--node-rank", "-r") == 0 && cpu < 0.01 && c.Moves.ThreadsLooked > 0 && c.Moves.ThreadsRan == 0 {
		f.Strength = rule.Strong
		f.Says = fmt.Sprintf("Nothing moved in %.0f s: none of %d threads ran even once.", c.Moves.WindowMS/1000, c.Moves.ThreadsLooked)
	}
	if p := c.Phases.Current; p != "" {
		f.Says += fmt.Sprintf(" The log was last in the phase %s.", p)
		if l := c.Phases.LastLine; l != nil {
			f.Cites = append(f.Cites, c.Cite("line of the last phase in the log", l.Field("line")...))
		}
	}
	f.Next = append(lockFileSteps(c), f.Next...)
	f.Says += c.OddRanks()
	return []rule.Finding{f}
}

// lockFileSteps are for a lock file that may be what it waits for, where that
// is too little known to be said (see rule stale-lock-file).
func lockFileSteps(c *rule.Case) []rule.Step {
	for _, l := range c.LockFiles {
		if l.Kind != evidence.LockPresence {
			continue
		}
		if len(l.Holders) > 0 {
			h := l.Holders[0]
			return []rule.Step{{Do: fmt.Sprintf("See what process %d does: it holds the lock file %s", h.PID, l.Path), Risk: rule.RiskNone, Command: fmt.Sprintf("ps -fp %d", h.PID)}}
		}
		return []rule.Step{{Do: fmt.Sprintf("A build that was killed may have left the lock file %s (%s old); see who has it open, and remove it only if no build runs", l.Path, facts.Lasting(l.AgeS)),
			Risk: rule.RiskNone, Command: "fuser -v " + rule.Quoted(l.Path)}}
	}
	return nil
}

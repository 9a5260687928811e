package deadlocked

import (
	"fmt"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// MissingRank is a group of ranks that waits for one that is not there.
var MissingRank = rule.Rule{
	ID:      "missing-rank",
	Verdict: rule.Deadlocked,
	Title:   "The ranks wait for one that does not exist",
	Doc: `Looks for a server whose ranks all have to be on this machine, of which fewer
live than its command line asks for, while those that live meet: one of them
listens as the store, others are connected to it. Each waits until all have come.
The store fails after its own time-out (10 or 30 minutes are usual), the server
never becomes ready.

It is claimed only if the others have come so far that every rank must have been
started long before (a rank's line in the log about the set-up of communicators,
or two minutes of age: engines start their ranks in one go), if the process that
starts ranks does nothing, if no process without a title could be the missing one,
and if nothing moves over the window. Ranks of other hosts cannot be counted from
here: with several nodes the rule is silent.

What would make it wrong: a version of the engine that starts its ranks one after
the other, or with other processes than the count expects.

Sources: the engines' process titles (rules/engines); PyTorch's TCPStore, which
waits for world_size clients.`,
	Needs:      []evidence.Need{evidence.NeedTree, evidence.NeedMovement, evidence.NeedSockets},
	Suppresses: []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck"},
	Eval:       evalMissingRank,
	Against: func(c *rule.Case) *rule.Because {
		for _, h := range c.Heads {
			if isRank(h.Role) && h.Expected > 1 && len(h.Living) >= h.Expected {
				return &rule.Because{Says: fmt.Sprintf("all %d × %s (%s) live", h.Expected, h.Role, h.Because),
					Cites: []rule.Cite{c.Cite("one of them", "processes", c.Tree.Index[h.Living[0]], "pid")}}
			}
		}
		return nil
	},
}

const (
	// meetingWindowMS is the shortest time in which nothing moved.
	meetingWindowMS = 5000
	// allStarted is the age of ranks after which the last must have been started.
	allStarted = 2 * time.Minute
)

func evalMissingRank(c *rule.Case) []rule.Finding {
	if c.Engine.Known == nil || c.Phases.Ready != nil || c.Phases.Stopping != nil || c.Door.Listener >= 0 || c.Door.NotKnown != "" {
		return nil
	}
	if c.Moves.WindowMS < meetingWindowMS || facts.Furthest(&c.Moves) != nil || c.Moves.Demand(c.Engine.MainPID) >= 0.05 {
		return nil
	}
	if c.Engine.Command.Int(1, "--nnodes", "-n") > 1 {
		return nil
	}
	var found []rule.Finding
	for _, h := range c.Heads {
		if !isRank(h.Role) || h.Expected < 2 || h.Missing() == 0 || len(h.Living) == 0 {
			continue
		}
		which := fmt.Sprintf("%d × %s", h.Missing(), h.Role)
		if len(h.Absent) == h.Missing() {
			which = h.Role + " " + strings.Join(h.Absent[:min(4, len(h.Absent))], ", ")
		}
		f := rule.Finding{Cause: rule.MissingRank, Strength: rule.Likely, Victims: len(h.Living),
			Culprits: []rule.Culprit{{Name: which, Where: "no such process"}},
			Says:     fmt.Sprintf("The ranks wait for one that is not there: %d needed (%s), %d living, %s is missing", h.Expected, h.Because, len(h.Living), which),
			Cites:    []rule.Cite{c.Cite("one of the ranks that wait", "processes", c.Tree.Index[h.Living[0]], "pid")},
			FlipsIf:  []string{"the missing rank is started"},
			Next: []rule.Step{
				{Do: "Look in the log for why it was not started or has ended", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -o pid,ppid,stat,lstart,args --ppid %d", c.Engine.MainPID)},
				{Do: "Restart the server: it cannot become ready without it", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", c.Target.PID)},
			}}
		store, joined := meets(c, h.Living)
		if store >= 0 {
			l := &c.Sockets.Listeners[store]
			f.Says += fmt.Sprintf("; at the store of %s (%s), %d of %d have met", c.Part(l.PID), l.Address, joined, h.Expected)
			f.Cites = append(f.Cites, c.Cite("where the ranks meet", "sockets", "listeners", store, "address"))
		}
		started, cite := allWereStarted(c, h)
		if started {
			f.Cites = append(f.Cites, cite)
		}
		if store >= 0 && joined >= 1 && started {
			f.Strength = rule.Strong
		}
		f.Says += fmt.Sprintf(". Nothing moved in %.0f s.", c.Moves.WindowMS/1000)
		found = append(found, f)
	}
	return found
}

// isRank tells the parts that form a group and wait for each other.
func isRank(role string) bool { return role == "scheduler" || role == "worker" }

// meets finds the listener of a rank to which most of the ranks are connected,
// and how many have come, its owner counted; -1 if there is none.
func meets(c *rule.Case, ranks []int) (listener, joined int) {
	isOne := map[int]bool{}
	for _, pid := range ranks {
		isOne[pid] = true
	}
	listener = -1
	for i := range c.Sockets.Listeners {
		l := &c.Sockets.Listeners[i]
		if l.Network == "unix" || !isOne[l.PID] {
			continue
		}
		come := map[int]bool{l.PID: true}
		for k := range c.Sockets.Connections {
			n := &c.Sockets.Connections[k]
			if n.PeerPID == l.PID && isOne[n.PID] && n.State == "ESTABLISHED" && strings.HasSuffix(n.Remote, fmt.Sprintf(":%d", l.Port)) {
				come[n.PID] = true
			}
		}
		if len(come) > joined {
			listener, joined = i, len(come)
		}
	}
	return listener, joined
}

// allWereStarted: the ranks that live are too far or too old for another to be
// still to come.
func allWereStarted(c *rule.Case, h facts.HeadCount) (bool, rule.Cite) {
	if ev := c.Phases.Reached(evidence.PhaseCommunicator); ev != nil {
		return true, c.Cite("a rank has begun to meet the others", ev.Field("text")...)
	}
	youngest := h.Living[0]
	for _, pid := range h.Living {
		if c.Processes[c.Tree.Index[pid]].Started.After(c.Processes[c.Tree.Index[youngest]].Started) {
			youngest = pid
		}
	}
	p := &c.Processes[c.Tree.Index[youngest]]
	if p.Started.IsZero() || c.Taken.Sub(p.Started) < allStarted {
		return false, rule.Cite{}
	}
	return true, c.Cite("the youngest rank was started then", "processes", c.Tree.Index[youngest], "start_ticks")
}

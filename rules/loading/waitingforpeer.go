package loading

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// WaitingForPeer is a server of which some ranks wait for one that still works.
var WaitingForPeer = rule.Rule{
	ID:      "waiting-for-peer",
	Verdict: rule.Loading,
	Title:   "Ranks wait for another rank, which moves",
	Doc: `Looks for a server that is not up, of whose ranks some do nothing and others move.
The ones at rest are healthy if they wait for one that works: it has more to read,
compiles for all, or was started late. The rank that works is the one to look at.

That they wait for it is taken from a connection between the two from which the
one at rest reads, or from the log, in which the one that works is in an earlier
phase. A connection alone is only likely, as ranks keep theirs all their life.

What would make it wrong: a rank that works for ever while the others have lost
their way; a rank at rest that waits for something else.

Sources: proc_pid_net(5), the engines' log lines (rules/engines).`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedTree},
	Suppresses: []rule.ID{"no-movement"},
	Eval:       evalWaitingForPeer,
	Against: func(c *rule.Case) *rule.Because {
		waits, works := restAndWork(c)
		if len(waits) > 0 && len(works) == 0 {
			return &rule.Because{Says: fmt.Sprintf("no rank moves, %d of them rest", len(waits)), Cites: []rule.Cite{c.Cite("one of them", "processes", c.Tree.Index[waits[0]], "pid")}}
		}
		return nil
	},
}

func evalWaitingForPeer(c *rule.Case) []rule.Finding {
	if upAlready(c) || c.Engine.Known == nil || c.Door.Listener >= 0 {
		return nil
	}
	waits, works := restAndWork(c)
	for _, peer := range works {
		var waiting []int
		var cites []rule.Cite
		strength := rule.Likely
		for _, pid := range waits {
			sure, cite, ok := waitsFor(c, pid, peer)
			if !ok {
				continue
			}
			waiting = append(waiting, pid)
			if cites = append(cites, cite); sure {
				strength = rule.Strong
			}
		}
		if len(waiting) == 0 {
			continue
		}
		doing := fmt.Sprintf("uses %.0f %% of a processor", 100*c.Moves.Demand(peer))
		if m := facts.FurthestOf(&c.Moves, peer); m != nil {
			doing = facts.MoveSays(m)
			cites = append(cites, citeMove(c, m))
		} else {
			strength = rule.Likely
		}
		var names []string
		for _, pid := range waiting[:min(4, len(waiting))] {
			names = append(names, c.Part(pid))
		}
		current := c.Phases.Current
		if current == "" {
			current = evidence.PhaseStarting
		}
		p := phase(c, current)
		return []rule.Finding{{Cause: rule.WaitingForPeer, Strength: strength, Phase: p, Victims: len(waiting),
			Says:    fmt.Sprintf("%s wait%s for %s, which moves: %s.%s", rule.Capital(strings.Join(names, ", ")), plural(len(waiting)), c.Part(peer), doing, c.OddRanks()),
			Cites:   cites[:min(len(cites), 6)],
			FlipsIf: []string{"the rank that is waited for stops moving"}, Next: again(c, p)}}
	}
	return nil
}

func plural(n int) string {
	if n == 1 {
		return "s"
	}
	return ""
}

// restAndWork are the ranks that do nothing and those that move, by PID.
func restAndWork(c *rule.Case) (rest, work []int) {
	for _, h := range c.Heads {
		if h.Role != "scheduler" && h.Role != "worker" {
			continue
		}
		for _, pid := range h.Living {
			moved, demand := facts.FurthestOf(&c.Moves, pid) != nil, c.Moves.Demand(pid)
			switch {
			case moved || demand >= leastShare:
				work = append(work, pid)
			case demand < 0.02:
				rest = append(rest, pid)
			}
		}
	}
	return rest, work
}

// waitsFor says whether a rank waits for a peer, and where that shows.
func waitsFor(c *rule.Case, pid, peer int) (sure bool, cite rule.Cite, ok bool) {
	if n := len(c.Waits) - 1; n >= 0 {
		for i := range c.Waits[n].Waits {
			w := &c.Waits[n].Waits[i]
			if w.PID == pid && w.Blocked != nil && slices.ContainsFunc(w.Blocked.Wakers, func(k evidence.Waker) bool { return k.PID == peer }) && w.Blocked.Connection != "" {
				return true, c.Cite(fmt.Sprintf("process %d reads from a connection to process %d", pid, peer), "waits", n, "waits", i, "blocked", "connection"), true
			}
		}
	}
	_, behind, ahead := c.Phases.Laggards()
	if slices.Contains(behind, c.Engine.Roles[peer].Rank) && slices.Contains(ahead, c.Engine.Roles[pid].Rank) {
		if ev := c.Phases.Wrote(c.Engine.Roles[peer].Rank); ev != nil {
			return true, c.Cite("the last known line of the rank that works", ev.Field("text")...), true
		}
	}
	if c.Sockets != nil {
		for i := range c.Sockets.Connections {
			if n := &c.Sockets.Connections[i]; n.PID == pid && n.PeerPID == peer && n.State == "ESTABLISHED" {
				return false, c.Cite(fmt.Sprintf("process %d is connected to process %d", pid, peer), "sockets", "connections", i, "remote"), true
			}
		}
	}
	return false, rule.Cite{}, false
}

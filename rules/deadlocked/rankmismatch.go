package deadlocked

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// RankMismatch is a group of ranks that are out of step.
var RankMismatch = rule.Rule{
	ID:      "rank-mismatch",
	Verdict: rule.Deadlocked,
	Title:   "Ranks wait to receive from each other, and none sends",
	Doc: `Looks for two ranks of the server that both read from the same TCP connection, one
at either end, with nothing in it: each is in a collective operation that the
other has left or not yet begun.

It is proved where every thread of both sleeps and only they themselves could send:
the circle is then closed, as that of locks is (see lock-cycle). It is strong where
other threads wait, without a time-out, for events that could come from elsewhere,
if no thread of either ran over the whole window and the log shows the ranks in
different phases. Without the log it is only likely: a group whose first rank waits
for work looks the same as long as there is none, which is why a server that is up
is left out.

What would make it wrong: a third party that writes to one of them, later than the
window; a signal.

Sources: proc_pid_net(5); the fixed point over the waits (rules/facts); measured on
Linux 6.18.`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords, evidence.NeedMovement},
	Suppresses: suppressed,
	Eval:       evalRankMismatch,
}

func evalRankMismatch(c *rule.Case) []rule.Finding {
	found := circles(c, rule.RankMismatch, throughRanks)
	for i := range found {
		found[i].Says += c.OddRanks()
	}
	if len(found) > 0 || c.Phases.Ready != nil || c.Door.Listener >= 0 || c.Moves.WindowMS < meetingWindowMS || facts.Furthest(&c.Moves) != nil {
		return found
	}
	rest := facts.AtRest(c.Snapshot, &c.Moves)
	var tids []int
	for tid := range c.WaitGraph.Waiters {
		tids = append(tids, tid)
	}
	slices.Sort(tids)
	for _, tid := range tids {
		a := c.WaitGraph.Waiters[tid]
		for _, peer := range tids {
			b := c.WaitGraph.Waiters[peer]
			if a.PID >= b.PID || !rest[a.PID] || !rest[b.PID] || !faces(c, a, b) {
				continue
			}
			f := rule.Finding{Cause: rule.RankMismatch, Strength: rule.Likely,
				Says: fmt.Sprintf("Ranks are out of step: %s and %s each wait to receive from the other (%s), nothing is on its way, and no thread of either ran in %.0f s.%s",
					c.Part(a.PID), c.Part(b.PID), blockedOf(c, a).Connection, c.Moves.WindowMS/1000, c.OddRanks()),
				Culprits: []rule.Culprit{culprit(c, a), culprit(c, b)},
				Cites:    append(citeWait(c, a), citeWait(c, b)...),
				FlipsIf:  []string{"any thread of the two runs again (its schedstat changes)"},
				Next:     restart(c, a.PID)}
			if phase, behind, _ := c.Phases.Laggards(); phase != "" && c.WaitGraph.Looks >= 2 && !c.WaitGraph.Unclocked {
				f.Strength = rule.Strong
				if ev := c.Phases.Wrote(behind[0]); ev != nil {
					f.Cites = append(f.Cites, c.Cite("the last line of the rank that is behind", ev.Field("text")...))
				}
			}
			return append(found, f)
		}
	}
	return found
}

// faces: two ranks read from the two ends of one TCP connection.
func faces(c *rule.Case, a, b facts.Waiter) bool {
	x, y := blockedOf(c, a), blockedOf(c, b)
	return x != nil && y != nil && isRank(c.Engine.Roles[a.PID].Name) && isRank(c.Engine.Roles[b.PID].Name) &&
		x.Connection != "" && x.Connection == reversed(y.Connection) && empty(x) && empty(y)
}

func empty(b *evidence.Blocked) bool {
	return b.Kind == evidence.BlockSocketRead && b.QueuedBytes != nil && *b.QueuedBytes == 0
}

func blockedOf(c *rule.Case, n facts.Waiter) *evidence.Blocked {
	return c.Waits[n.Look].Waits[n.Wait].Blocked
}

// reversed is a connection as its other end has it.
func reversed(connection string) string {
	local, remote, _ := strings.Cut(connection, " to ")
	return remote + " to " + local
}

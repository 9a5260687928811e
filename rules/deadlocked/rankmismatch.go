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
	var found []rule.Finding
	pairs := facing(c)
	told := map[int]bool{}
	for _, p := range pairs {
		for grade, closed := range c.WaitGraph.ClosedAt {
			if slices.Contains(closed, p[0].PID) && slices.Contains(closed, p[1].PID) {
				s := circleStrength(c, facts.Proof(grade), []int{p[0].TID, p[1].TID})
				found = append(found, outOfStep(c, p, s, "and only they themselves could send"))
				told[p[0].TID], told[p[1].TID] = true, true
				break
			}
		}
	}
	for _, f := range circles(c, rule.RankMismatch, throughRanks) {
		if !told[f.Culprits[0].TID] {
			f.Says += c.OddRanks()
			found = append(found, f)
		}
	}
	if len(found) > 0 || c.Phases.Ready != nil || c.Door.Listener >= 0 || c.Moves.WindowMS < meetingWindowMS || facts.Furthest(&c.Moves) != nil {
		return found
	}
	rest := facts.AtRest(c.Snapshot, &c.Moves)
	for _, p := range pairs {
		if !rest[p[0].PID] || !rest[p[1].PID] {
			continue
		}
		s := rule.Likely
		phase, behind, _ := c.Phases.Laggards()
		if phase != "" && c.WaitGraph.Looks >= 2 && !c.WaitGraph.Unclocked {
			s = rule.Strong
		}
		f := outOfStep(c, p, s, fmt.Sprintf("and no thread of either ran in %.0f s", c.Moves.WindowMS/1000))
		if phase != "" {
			if ev := c.Phases.Wrote(behind[0]); ev != nil {
				f.Cites = append(f.Cites, c.Cite("the last line of the rank that is behind", ev.Field("text")...))
			}
		}
		return []rule.Finding{f}
	}
	return nil
}

// outOfStep is the finding about two ranks.
func outOfStep(c *rule.Case, p [2]facts.Waiter, s rule.Strength, why string) rule.Finding {
	a, b := p[0], p[1]
	return rule.Finding{Cause: rule.RankMismatch, Strength: s,
		Says: fmt.Sprintf("Ranks are out of step: %s and %s each wait to receive from the other (%s), nothing is on its way, %s.%s",
			c.Part(a.PID), c.Part(b.PID), blockedOf(c, a).Connection, why, c.OddRanks()),
		Culprits: []rule.Culprit{culprit(c, a), culprit(c, b)},
		Cites:    append(citeWait(c, a), citeWait(c, b)...),
		FlipsIf:  []string{"any thread of the two runs again (its schedstat changes)"},
		Next:     restart(c, a.PID)}
}

// facing are the pairs of ranks that read from the two ends of one connection.
func facing(c *rule.Case) [][2]facts.Waiter {
	byConnection := map[string]facts.Waiter{}
	var tids []int
	for tid, n := range c.WaitGraph.Waiters {
		if b := blockedOf(c, n); b != nil && b.Connection != "" && empty(b) && isRank(c.Engine.Roles[n.PID].Name) {
			byConnection[b.Connection] = n
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	var pairs [][2]facts.Waiter
	for _, tid := range tids {
		a := c.WaitGraph.Waiters[tid]
		b, ok := byConnection[reversed(blockedOf(c, a).Connection)]
		if ok && a.PID != b.PID && a.TID < b.TID {
			pairs = append(pairs, [2]facts.Waiter{a, b})
		}
	}
	return pairs
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

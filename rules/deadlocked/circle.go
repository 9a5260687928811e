package deadlocked

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// nature is what a circle goes through, which decides the rule and the cause.
type nature int

const (
	throughLocks nature = iota // locks, joins, file locks, children that are waited for
	throughPipes               // at least one pipe or socket
	throughGIL                 // at least one wait for the GIL
	throughRanks               // TCP connections between ranks of an engine, and nothing else
)

func natureOf(c *rule.Case, circle []int) nature {
	g := &c.WaitGraph
	n := throughLocks
	ranks := true
	for _, tid := range circle {
		b := c.Waits[g.Waiters[tid].Look].Waits[g.Waiters[tid].Wait].Blocked
		ranks = ranks && b != nil && b.Connection != "" && isRank(c.Engine.Roles[g.Waiters[tid].PID].Name)
	}
	if ranks {
		return throughRanks
	}
	for _, tid := range circle {
		switch on := g.Waiters[tid].On; {
		case on == string(evidence.PythonGILWait):
			return throughGIL
		case strings.HasPrefix(on, "pipe-"), strings.HasPrefix(on, "socket-"):
			n = throughPipes
		}
	}
	return n
}

// circles are the findings of the circles of one nature.
func circles(c *rule.Case, cause rule.Cause, of nature) []rule.Finding {
	var found []rule.Finding
	g := &c.WaitGraph
	for grade := range g.Dead {
		for _, circle := range g.Dead[grade].Circles {
			if natureOf(c, circle) != of {
				continue
			}
			f := rule.Finding{
				Cause:    cause,
				Strength: circleStrength(c, facts.Proof(grade), circle),
				Victims:  len(g.Behind(circle)),
				Next:     restart(c, g.Waiters[circle[0]].PID),
				FlipsIf:  []string{"any thread of the circle runs again (its schedstat changes)"},
			}
			f.Says = circleSays(c, circle, f.Strength)
			for _, tid := range circle {
				n := g.Waiters[tid]
				f.Culprits = append(f.Culprits, culprit(c, n))
				f.Cites = append(f.Cites, citeWait(c, n)...)
			}
			found = append(found, f)
		}
	}
	return found
}

// circleSays tells the circle in jstack's form. A long one is cut in its
// middle.
func circleSays(c *rule.Case, circle []int, s rule.Strength) string {
	const most = 6
	g := &c.WaitGraph
	several := false
	for _, tid := range circle {
		several = several || g.Waiters[tid].PID != g.Waiters[circle[0]].PID || len(g.Waiters[tid].Procs) > 0
	}
	var parts []string
	for i, tid := range circle {
		if len(circle) > most && i == most-1 {
			parts = append(parts, fmt.Sprintf("… and so on through %d threads in all, until the last waits for %s", len(circle), c.Thread(g.Waiters[circle[0]].PID, circle[0])))
			break
		}
		n := g.Waiters[tid]
		name := who(c, n.PID, tid)
		if n.PID != c.Target.PID || several {
			name += " of " + c.Process(n.PID)
		}
		parts = append(parts, name+" "+waitsFor(c, n))
	}
	end := ". None of them can ever run again."
	switch {
	case s < rule.Proved && len(circle) == 1:
		end = ". It does not move again by itself."
	case s < rule.Proved && len(circle) == 2:
		end = ". Neither moves again by itself."
	case s < rule.Proved:
		end = ". None of them moves again by itself."
	case len(circle) == 1:
		end = ". It can never run again."
	case len(circle) == 2:
		end = ". Neither can ever run again."
	}
	says := strings.Join(parts, "; ") + end
	return rule.Capital(says)
}

func againstCircle(c *rule.Case) *rule.Because {
	last := len(c.Waits) - 1
	n := len(c.Waits[last].Waits)
	if n == 0 {
		return &rule.Because{Says: "no thread waits for another"}
	}
	named := 0
	for _, w := range c.WaitGraph.Waiters {
		if w.ForTID != 0 {
			named++
		}
	}
	says := fmt.Sprintf("%d threads wait for others", n)
	if n == 1 {
		says = "one thread waits for others"
	}
	if named == 0 {
		says += ", none for a lock that a sleeping thread holds"
	} else {
		says += ", and no chain of owners comes back to its start"
	}
	return &rule.Because{Says: says, Cites: []rule.Cite{
		c.Cite("one of them", "waits", last, "waits", 0, "b", "syscall"),
	}}
}

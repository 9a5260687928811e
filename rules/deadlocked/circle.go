package deadlocked

import (
	"fmt"
	"slices"
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
)

func natureOf(g *facts.WaitGraph, circle []int) nature {
	n := throughLocks
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
			if natureOf(g, circle) != of {
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

// circleStrength is that of its grade, but for circles that a thread outside
// could break after all: a normal mutex that its own holder waits for can be
// unlocked by somebody else (POSIX forbids it, glibc lets it happen, and some
// programs park a thread that way), and pthread_join can be cancelled. If every
// thread of the process belongs to the dead, nobody is left to do so. Else it
// is strong only if nobody ran at all, and the server is not one that may just
// be idle.
func circleStrength(c *rule.Case, grade facts.Proof, circle []int) rule.Strength {
	g := &c.WaitGraph
	s := strength(g, grade)
	if s < rule.Strong || !breakable(g, circle) {
		return s
	}
	closed := true
	for _, tid := range circle {
		closed = closed && slices.Contains(g.ClosedPIDs, g.Waiters[tid].PID)
	}
	switch {
	case closed:
		return s
	case c.Moves.WindowMS >= restMS && c.Moves.ThreadsLooked > 0 && c.Moves.ThreadsRan == 0 && !c.Door.Listens:
		return rule.Strong
	}
	return rule.Likely
}

// restMS is the shortest time of complete rest that says something.
const restMS = 5000

// breakable: the circle is one thread and its own mutex, or joins alone.
func breakable(g *facts.WaitGraph, circle []int) bool {
	if len(circle) == 1 {
		return g.Waiters[circle[0]].ForTID != 0 // not a pipe of its own
	}
	for _, tid := range circle {
		if g.Waiters[tid].On != string(evidence.KindThread) {
			return false
		}
	}
	return true
}

// circleSays tells the circle in jstack's form. A long one is cut in its
// middle.
func circleSays(c *rule.Case, circle []int, s rule.Strength) string {
	const most = 6
	g := &c.WaitGraph
	var parts []string
	for i, tid := range circle {
		if len(circle) > most && i == most-1 {
			parts = append(parts, fmt.Sprintf("… and so on through %d threads in all, until the last waits for %s", len(circle), c.Thread(g.Waiters[circle[0]].PID, circle[0])))
			break
		}
		n := g.Waiters[tid]
		name := who(c, n.PID, tid)
		if n.PID != c.Target.PID && (i == 0 || n.PID != g.Waiters[circle[i-1]].PID) || len(n.Procs) > 0 {
			name += " of " + c.Process(n.PID)
		}
		parts = append(parts, name+" "+waitsFor(c, n))
	}
	end := ". None of them can ever run again."
	switch {
	case s < rule.Proved:
		end = ". None of them moves again by itself."
	case len(circle) == 1:
		end = ". It can never run again."
	case len(circle) == 2:
		end = ". Neither can ever run again."
	}
	says := strings.Join(parts, "; ") + end
	return strings.ToUpper(says[:1]) + says[1:]
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
	says := fmt.Sprintf("%d threads wait for others, and no chain of owners comes back to its start", n)
	if named == 0 {
		says = fmt.Sprintf("%d threads wait for others, none for a lock that a sleeping thread holds", n)
	}
	return &rule.Because{Says: says, Cites: []rule.Cite{
		c.Cite("one of them", "waits", last, "waits", 0, "b", "syscall"),
	}}
}

package report

import (
	"fmt"
	"slices"

	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Move is one kind of thing that moved during the window.
type Move struct {
	Kind string `json:"kind"`
	// Processes is in how many it moved, 0 for what belongs to none (GPUs, logs,
	// caches).
	Processes int `json:"processes"`
	// Delta is the change over the window of all together and PerS its rate, in
	// the kind's own unit: bytes, milliseconds of CPU time, faults, lines,
	// processes.
	Delta float64 `json:"delta"`
	PerS  float64 `json:"per_s"`
	// PID is the process in which it moved most; Says is that in words.
	PID  int    `json:"pid,omitempty"`
	Says string `json:"says"`
	// TowardsAnEnd: such a movement leads towards an end. Processor time and
	// thread runs alone do not: a spinning thread has both.
	TowardsAnEnd bool `json:"towards_an_end"`
}

// movement is what moved, kind by kind.
func movement(c *rule.Case) []Move {
	var out []Move
	for i := range c.Moves.Moves {
		m := &c.Moves.Moves[i]
		if m.Kind == facts.ThreadRuns {
			continue // one of each thread
		}
		at := slices.IndexFunc(out, func(o Move) bool { return o.Kind == string(m.Kind) })
		if at < 0 {
			most := c.Moves.Most(m.Kind)
			out = append(out, Move{Kind: string(m.Kind), PID: most.PID, Says: facts.MoveSays(most)})
			at = len(out) - 1
		}
		o := &out[at]
		o.Delta, o.PerS = o.Delta+m.Delta, o.PerS+m.PerS
		o.TowardsAnEnd = o.TowardsAnEnd || facts.LeadsTowards(m)
		if m.PID != 0 {
			o.Processes++
		}
	}
	for i := range out {
		o := &out[i]
		o.Delta, o.PerS = round(o.Delta, 3), round(o.PerS, 3)
	}
	return out
}

// moves are those movements in the text report, what leads towards an end
// first.
func (t *texter) moves(r *Report) {
	if r.WindowMS <= 0 {
		return
	}
	title := fmt.Sprintf("What moved in %s", seconds(r.WindowMS/1000))
	if slices.ContainsFunc(r.Movement, func(m Move) bool { return !m.TowardsAnEnd }) {
		title += " (+ is progress)"
	}
	t.title(title)
	if len(r.Movement) == 0 {
		t.line("  nothing")
		return
	}
	for _, towards := range []bool{true, false} {
		for _, m := range r.Movement {
			if m.TowardsAnEnd != towards {
				continue
			}
			mark := "  - "
			if towards {
				mark = "  + "
			}
			says := m.Says
			if m.Processes > 1 {
				says += fmt.Sprintf(", in %d processes", m.Processes)
			}
			t.wrap(mark, says)
		}
	}
}

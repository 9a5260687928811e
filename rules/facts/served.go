package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Served is one number that the log gives again and again while requests are
// served, by rank: requests running or waiting, or tokens per second.
type Served struct {
	// Name is that of the group (evidence.Signature.Series).
	Name, Rank string
	Points     []ServedPoint
	// Min, Median and Max are of the points at which the number was not zero:
	// an idle server's rate says nothing about its speed. All zero if none was.
	Min, Median, Max float64
}

// ServedPoint is the number in one line.
type ServedPoint struct {
	Log   int
	Line  int64
	At    *time.Time
	Value float64
}

// Last is the newest point.
func (s *Served) Last() ServedPoint { return s.Points[len(s.Points)-1] }

// servedNames are the numbers in the order in which they are told.
var servedNames = []string{"tokens_per_s", "prompt_tokens_per_s", "running", "waiting", "kv_percent"}

// Served are the series in the known lines, in the order of servedNames and of
// ranks. Points come in the order of the log.
func (t *Timeline) Served() []Served {
	type key struct{ name, rank string }
	by := map[key]*Served{}
	seen := map[*evidence.Mark]bool{}
	for i := range t.events {
		ev := &t.events[i]
		if seen[ev.Mark] || ev.Mark.Series == nil {
			continue
		}
		seen[ev.Mark] = true
		for _, p := range ev.Mark.Series.Points {
			for name, v := range p.Values {
				k := key{name, ev.Mark.Rank}
				if by[k] == nil {
					by[k] = &Served{Name: name, Rank: ev.Mark.Rank}
				}
				by[k].Points = append(by[k].Points, ServedPoint{Log: ev.log(), Line: p.Line, At: p.At, Value: v})
			}
		}
	}
	var all []Served
	for _, s := range by {
		if slices.Contains(servedNames, s.Name) {
			s.sum()
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Served) int {
		return cmp.Or(cmp.Compare(slices.Index(servedNames, a.Name), slices.Index(servedNames, b.Name)), cmp.Compare(a.Rank, b.Rank))
	})
	return all
}

// sum orders the points, which may come from lines of several signatures.
func (s *Served) sum() {
	slices.SortStableFunc(s.Points, func(a, b ServedPoint) int { return cmp.Or(cmp.Compare(a.Log, b.Log), cmp.Compare(a.Line, b.Line)) })
	var values []float64
	for _, p := range s.Points {
		if p.Value > 0 {
			values = append(values, p.Value)
		}
	}
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	n := len(values)
	s.Min, s.Max, s.Median = values[0], values[n-1], (values[(n-1)/2]+values[n/2])/2
}

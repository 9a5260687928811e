package report

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// timeline is one line a phase; the ranks of a phase share one.
func (t *texter) timeline(r *Report) {
	if len(r.Timeline) == 0 {
		return
	}
	t.title("Phases, by the log")
	for _, group := range phases(r.Timeline) {
		t.line("  %s", phaseOf(group))
	}
}

// phases puts the spans of one phase together, in order of appearance.
func phases(spans []Span) [][]Span {
	var order []evidence.Phase
	by := map[evidence.Phase][]Span{}
	for _, s := range spans {
		if len(by[s.Phase]) == 0 {
			order = append(order, s.Phase)
		}
		by[s.Phase] = append(by[s.Phase], s)
	}
	var groups [][]Span
	for _, p := range order {
		groups = append(groups, by[p])
	}
	return groups
}

// phaseOf says when a phase began, how long its ranks took, which was last,
// which have not ended it, and where it stands in the log.
func phaseOf(group []Span) string {
	first, last, slowest, fastest := group[0], group[0], group[0], group[0]
	var open, ranks []string
	for _, s := range group {
		if s.Line < first.Line {
			first = s
		}
		if max(s.EndLine, s.Line) > max(last.EndLine, last.Line) {
			last = s
		}
		if s.Seconds != nil && (slowest.Seconds == nil || *s.Seconds > *slowest.Seconds) {
			slowest = s
		}
		if s.Seconds != nil && (fastest.Seconds == nil || *s.Seconds < *fastest.Seconds) {
			fastest = s
		}
		if s.Rank != "" {
			ranks = append(ranks, s.Rank)
			if s.EndLine == 0 {
				open = append(open, s.Rank)
			}
		}
	}
	l := fmt.Sprintf("%-14s", first.Phase)
	if first.Begin != nil {
		l += " from " + first.Begin.Format("15:04:05")
	}
	if slowest.Seconds != nil && *slowest.Seconds > 0 {
		l += " for " + seconds(*slowest.Seconds)
		switch {
		case len(ranks) > 1 && *slowest.Seconds > *fastest.Seconds && slowest.Rank != "":
			l += fmt.Sprintf(" (last of %d ranks: %s)", len(ranks), slowest.Rank)
		case len(ranks) > 1:
			l += fmt.Sprintf(" (%d ranks)", len(ranks))
		}
	}
	if len(open) > 0 && len(open) < len(ranks) {
		l += "; not ended: " + OneLine(strings.Join(open, ", "), 40)
	}
	switch {
	case last.EndLine > first.Line:
		return l + fmt.Sprintf("  lines %d to %d", first.Line, last.EndLine)
	case last.EndLine == 0 && last.Line > first.Line:
		return l + fmt.Sprintf("  lines %d to %d, not ended", first.Line, last.Line)
	}
	return l + fmt.Sprintf("  line %d", first.Line)
}

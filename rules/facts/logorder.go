package facts

import (
	"cmp"
	"slices"
	"time"
)

// inOrder puts the known lines of one or several logs in the order in which
// they were written: within a log by line, between logs by the times that the
// lines carry. A line without a time is as late as the last one above it that
// has one. The lines of a log without any time come first, as nothing says when
// they were written.
func inOrder(events []Event) []Event {
	logs := map[int][]Event{}
	var numbers []int
	for _, ev := range events {
		l := ev.log()
		if _, ok := logs[l]; !ok {
			numbers = append(numbers, l)
		}
		logs[l] = append(logs[l], ev)
	}
	slices.Sort(numbers)
	type placed struct {
		Event
		at time.Time // zero: before all others
	}
	all := make([]placed, 0, len(events))
	for _, l := range numbers {
		one := logs[l]
		slices.SortStableFunc(one, func(a, b Event) int { return cmp.Compare(a.Hit.Line, b.Hit.Line) })
		at := time.Time{}
		if i := slices.IndexFunc(one, func(ev Event) bool { return ev.Hit.At != nil }); i >= 0 {
			at = *one[i].Hit.At
		}
		for _, ev := range one {
			// A clock that was set back does not change the order of lines.
			if ev.Hit.At != nil && ev.Hit.At.After(at) {
				at = *ev.Hit.At
			}
			all = append(all, placed{ev, at})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return a.at.Compare(b.at) })
	ordered := make([]Event, len(all))
	for i := range all {
		ordered[i] = all[i].Event
	}
	return ordered
}

// log is the number of the log an event stands in.
func (e *Event) log() int {
	if len(e.At) > 1 {
		if i, ok := e.At[1].(int); ok {
			return i
		}
	}
	return 0
}

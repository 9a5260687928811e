package facts

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Decisive is a line of a log that a reader should see: what failed first and
// what followed from it, what the server says of being stuck, what came again
// and again. The last line of a log is rarely the one that tells.
type Decisive struct {
	Kind evidence.Kind
	// Line is its number, LastLine that of the last such line, Count how many
	// there are; Log is the number of the log.
	Log            int
	Line, LastLine int64
	Count          int64
	Rank, Text     string
	// Known: a signature knows it; other lines only look like an error.
	Known bool
	// Harmless is the number of the line that shows that the server got over it:
	// it became ready, or the same rank went on; 0: none does.
	Harmless int64
}

// goesOn drops the failures that a line of the same rank shows to be overcome.
// A line without a rank shows nothing: another process may have written it.
func (t *Timeline) goesOn(ev *Event) {
	if ev.Mark.Rank == "" {
		return
	}
	t.failures = slices.DeleteFunc(t.failures, func(f *Event) bool { return t.overcomes(ev, f.log(), f.Hit.Line, f.Mark.Rank) })
}

// overcomes says whether an event shows that what failed in a line of a log was
// got over.
func (t *Timeline) overcomes(ev *Event, log int, line int64, rank string) bool {
	if ev.log() != log || ev.Hit.Line <= line {
		return false
	}
	switch ev.Mark.Kind {
	case evidence.KindReady:
		return true
	case evidence.KindBegin, evidence.KindEnd, evidence.KindMark:
		// Not progress: another thread of a process that failed may go on drawing
		// its bar.
		return rank != "" && ev.Mark.Rank == rank
	}
	return false
}

// decisiveKinds are the kinds of known lines that are told.
var decisiveKinds = []evidence.Kind{evidence.KindFatal, evidence.KindConsequence, evidence.KindStall, evidence.KindHeartbeat, evidence.KindRetry, evidence.KindReady, evidence.KindShutdown}

// Decisive are these lines, in the order of the timeline.
func (t *Timeline) Decisive(logs []evidence.Log) []Decisive {
	var all []Decisive
	seen, same := map[*evidence.Mark]bool{}, map[repeated]int{}
	for i := range t.events {
		ev := &t.events[i]
		if !slices.Contains(decisiveKinds, ev.Mark.Kind) || seen[ev.Mark] {
			continue
		}
		seen[ev.Mark] = true
		d := Decisive{
			Kind: ev.Mark.Kind, Log: ev.log(), Line: ev.Hit.Line, LastLine: ev.Hit.Line, Count: ev.Mark.Count,
			Rank: ev.Mark.Rank, Text: ev.Hit.Text, Known: true,
		}
		if ev.Mark.Last != nil {
			d.LastLine = ev.Mark.Last.Line
		}
		if d.Kind == evidence.KindFatal {
			d.Harmless = t.overcome(d.Log, d.LastLine, d.Rank)
		}
		all = gather(all, d, ev.Mark.Signature, same)
	}
	for l := range logs {
		for _, e := range logs[l].Errors {
			all = insert(all, Decisive{
				Kind: evidence.KindFatal, Log: l, Line: e.Number, LastLine: e.Number, Count: 1, Rank: e.Rank, Text: e.Text,
				Harmless: t.overcome(l, e.Number, e.Rank),
			})
		}
	}
	return all
}

// repeated are lines that say nothing by themselves: those of all ranks are one.
type repeated struct {
	log       int
	signature string
}

// gather appends a line, or counts it to that of another rank.
func gather(all []Decisive, d Decisive, signature string, same map[repeated]int) []Decisive {
	if d.Kind != evidence.KindHeartbeat && d.Kind != evidence.KindRetry {
		return append(all, d)
	}
	k := repeated{d.Log, signature}
	i, ok := same[k]
	if !ok {
		same[k] = len(all)
		return append(all, d)
	}
	o := &all[i]
	if o.Rank != d.Rank {
		o.Rank = ""
	}
	o.Count, o.LastLine = o.Count+d.Count, max(o.LastLine, d.LastLine)
	return all
}

// insert puts a line in its place within its log, behind all of other logs if
// there is none.
func insert(all []Decisive, d Decisive) []Decisive {
	at := len(all)
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Log == d.Log && all[i].Line > d.Line {
			at = i
		}
	}
	return slices.Insert(all, at, d)
}

// overcome is the number of the first line that shows that a failure was got
// over, 0 for none.
func (t *Timeline) overcome(log int, line int64, rank string) int64 {
	for i := range t.events {
		if t.overcomes(&t.events[i], log, line, rank) {
			return t.events[i].Hit.Line
		}
	}
	return 0
}

package facts

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// Phase is a part of the server's start and how far it has come.
type Phase struct {
	Name  evidence.Phase
	Since *time.Time
	// Elapsed is in seconds; nil when Since is not known.
	Elapsed *float64
	// Done, Total and Rate are in Unit; Total 0: not known.
	Done, Total, Rate float64
	Unit              string
	Percent           *float64
	// ETA values are in seconds; nil when not known.
	ETA, ETALow, ETAHigh *float64
	// Silence is how long the log may be silent in this phase.
	Silence time.Duration
}

// Span is a phase of one rank in the log.
type Span struct {
	Phase      evidence.Phase
	Rank       string
	Begin, End *time.Time
	// Line is where it begins, EndLine where it ends (0: not ended).
	Line, EndLine int64
	At            []any
	// Bar: only a progress bar shows this span. One rank draws it for all, and
	// nothing says when it is over.
	Bar bool
}

// Event is one known line in its place.
type Event struct {
	Mark *evidence.Mark
	Hit  *evidence.Hit
	// At is where the hit stands in the snapshot.
	At []any
}

// Field is where a field of the line stands in the snapshot.
func (e *Event) Field(name string) []any {
	return append(slices.Clone(e.At), name)
}

// Timeline is what the log says about the server's life since its last launch.
type Timeline struct {
	// Known: a log was read and held at least one line of the engine.
	Known bool
	Spans []Span
	// Current is the phase the log was last in; CurrentSpan nil if none.
	Current     evidence.Phase
	CurrentSpan *Span
	// LastLine is the last known line that is no heartbeat.
	LastLine *Event
	// Ready is the server's own word; nil if it did not say it, or if it has
	// said something since that takes it back.
	Ready *Event
	// Fatal is the first line that says that a part failed, after which neither
	// the server said it was ready nor that part's rank went on; Stopping a line
	// about an orderly end.
	Fatal    *Event
	Stopping *Event
	// AddressInUse is the last line since the launch that says that the server
	// could not listen; a ready line does not take it back.
	AddressInUse *Event
	// Percent is the last percentage of the current phase.
	Percent *float64
	events  []Event
	// failures are the fatal lines so far that nothing has made harmless.
	failures []*Event
}

// timelineOf puts the marks of the engine and of the libraries in order.
func timelineOf(s *evidence.Snapshot, e Engine) Timeline {
	t := Timeline{}
	for l := range s.Logs {
		for m := range s.Logs[l].Marks {
			mark := &s.Logs[l].Marks[m]
			// uvicorn's lines are in many logs: a line of another engine says
			// nothing about this one.
			if known := engines.ByID(mark.Engine); known != nil && known.Role != nil && known != e.Known {
				continue
			}
			t.events = append(t.events, Event{mark, &mark.First, []any{"logs", l, "marks", m, "first"}})
			if mark.Last != nil {
				t.events = append(t.events, Event{mark, mark.Last, []any{"logs", l, "marks", m, "last"}})
			}
		}
	}
	t.events = inOrder(t.events)
	t.Known = len(t.events) > 0
	for i := range t.events {
		t.take(&t.events[i])
	}
	t.settle()
	t.goOn(e.Known)
	return t
}

// addressInUse ends the IDs of the lines with which a server says that it could
// not listen (rules/engines).
const addressInUse = ".address-in-use"

// take moves the timeline forward by one line.
func (t *Timeline) take(ev *Event) {
	switch ev.Mark.Kind {
	case evidence.KindHeartbeat, evidence.KindRetry, evidence.KindConsequence:
		return
	case evidence.KindFatal:
		if strings.HasSuffix(ev.Mark.Signature, addressInUse) {
			t.AddressInUse = ev
		}
		t.failures = append(t.failures, ev)
		return
	case evidence.KindStall:
		t.LastLine = ev
		return
	case evidence.KindShutdown:
		t.Stopping, t.Ready = ev, nil
		return
	case evidence.KindReady:
		// What failed before did not keep the server from becoming ready.
		t.Ready, t.failures, t.Stopping = ev, nil, nil
	case evidence.KindActivity:
		t.LastLine = ev
		return
	}
	t.LastLine = ev
	t.goesOn(ev)
	t.span(ev)
}

// span opens or closes the span of the event's phase and rank.
func (t *Timeline) span(ev *Event) {
	var open *Span
	for i := range t.Spans {
		sp := &t.Spans[i]
		if sp.Phase == ev.Mark.Phase && sp.Rank == ev.Mark.Rank {
			open = sp
		}
	}
	if open == nil {
		t.Spans = append(t.Spans, Span{Phase: ev.Mark.Phase, Rank: ev.Mark.Rank, Begin: ev.Hit.At, Line: ev.Hit.Line, At: ev.At,
			Bar: ev.Mark.Kind == evidence.KindProgress})
		open = &t.Spans[len(t.Spans)-1]
	}
	t.closeOthers(ev)
	switch ev.Mark.Kind {
	case evidence.KindEnd:
		open.End, open.EndLine = ev.Hit.At, ev.Hit.Line
	case evidence.KindBegin, evidence.KindProgress:
		if open.EndLine != 0 && ev.Hit.Line > open.EndLine {
			open.End, open.EndLine = nil, 0 // again, as for a draft model
		}
	}
	if p, ok := ev.Hit.Values["percent"]; ok && ev.Mark.Kind == evidence.KindProgress {
		if v, err := strconv.ParseFloat(p, 64); err == nil {
			t.Percent = &v
			t.Current = ev.Mark.Phase
			return
		}
	}
	if ev.Mark.Phase != t.Current {
		t.Percent = nil
	}
	t.Current = ev.Mark.Phase
}

// closeOthers ends the spans that a line shows to be over: those of other
// phases of the same rank, or of no rank; all at the ready line. A bar is over
// at the first end of its phase, as one rank draws it for all.
func (t *Timeline) closeOthers(ev *Event) {
	for i := range t.Spans {
		sp := &t.Spans[i]
		if sp.EndLine != 0 {
			continue
		}
		other := sp.Phase != ev.Mark.Phase && (sp.Rank == "" || sp.Rank == ev.Mark.Rank || ev.Mark.Kind == evidence.KindReady)
		if other || sp.Bar && sp.Phase == ev.Mark.Phase && ev.Mark.Kind == evidence.KindEnd {
			sp.End, sp.EndLine = ev.Hit.At, ev.Hit.Line
		}
	}
}

// settle finds the phase the server is in: the one of the rank that is furthest
// behind, if ranks have ended a phase at different times.
func (t *Timeline) settle() {
	if len(t.failures) > 0 {
		t.Fatal = t.failures[0]
	}
	if t.Ready != nil {
		t.Current, t.Percent = evidence.PhaseReady, nil
	}
	for i := range t.Spans {
		if t.Spans[i].Phase == t.Current {
			if t.CurrentSpan == nil || t.Spans[i].EndLine == 0 {
				t.CurrentSpan = &t.Spans[i]
			}
		}
	}
}

// goOn goes over to the phase that follows one that all ranks have ended.
func (t *Timeline) goOn(e *engines.Engine) {
	if e == nil || !t.Ended(t.Current) {
		return
	}
	next, ok := e.After[t.Current]
	if !ok {
		return
	}
	over := Span{Phase: next}
	for i := range t.Spans {
		if sp := &t.Spans[i]; sp.Phase == t.Current && sp.EndLine > over.Line {
			over.Line, over.Begin, over.At = sp.EndLine, sp.End, sp.At
		}
	}
	t.Current, t.CurrentSpan, t.Percent = next, &over, nil
}

// Behind are the ranks that have begun a phase and not ended it, while others
// have ended it.
func (t *Timeline) Behind(p evidence.Phase) (behind, ahead []string) {
	for i := range t.Spans {
		sp := &t.Spans[i]
		if sp.Phase != p || sp.Rank == "" {
			continue
		}
		if sp.EndLine == 0 {
			behind = append(behind, sp.Rank)
		} else {
			ahead = append(ahead, sp.Rank)
		}
	}
	return behind, ahead
}

// Laggards are the ranks that are in an earlier phase than others, by the last
// phase in which that shows: begun by all of them and ended by some. Other
// differences say nothing, as many lines are written by one rank for all.
func (t *Timeline) Laggards() (in evidence.Phase, behind, ahead []string) {
	for i := len(t.Spans) - 1; i >= 0; i-- {
		b, a := t.Behind(t.Spans[i].Phase)
		if len(b) == 0 || len(a) == 0 {
			continue
		}
		// A library may number the ranks that the engine names.
		other := func(rank string) bool { return kindOfRank(rank) != kindOfRank(b[0]) }
		if b, a = slices.DeleteFunc(b, other), slices.DeleteFunc(a, other); len(a) > 0 {
			return t.Spans[i].Phase, b, a
		}
	}
	return "", nil, nil
}

func kindOfRank(rank string) string { return strings.TrimRight(rank, "0123456789") }

// Wrote is the last line of a rank, as the log names it; nil if there is none.
func (t *Timeline) Wrote(rank string) *Event {
	for i := len(t.events) - 1; i >= 0; i-- {
		if t.events[i].Mark.Rank == rank {
			return &t.events[i]
		}
	}
	return nil
}

// Line is the last line of a signature, nil if there is none.
func (t *Timeline) Line(signature string) *Event {
	for i := len(t.events) - 1; i >= 0; i-- {
		if t.events[i].Mark.Signature == signature {
			return &t.events[i]
		}
	}
	return nil
}

// Attempt is the last line about an attempt to reach another rank.
func (t *Timeline) Attempt() *Event {
	for i := len(t.events) - 1; i >= 0; i-- {
		m := t.events[i].Mark
		if m.Phase == evidence.PhaseCommunicator && (m.Kind == evidence.KindRetry || m.Kind == evidence.KindStall) {
			return &t.events[i]
		}
	}
	return nil
}

// Reached is the first line that begins or marks a phase.
func (t *Timeline) Reached(p evidence.Phase) *Event {
	for i := range t.events {
		if m := t.events[i].Mark; m.Phase == p && (m.Kind == evidence.KindBegin || m.Kind == evidence.KindMark) {
			return &t.events[i]
		}
	}
	return nil
}

// Beyond is the first line that only ranks write whose group is complete: the
// end of the set-up of communicators, or a line of the engine about a later
// phase of the load.
func (t *Timeline) Beyond(engine string) *Event {
	for i := range t.events {
		m := t.events[i].Mark
		if m.Engine != engine || m.Kind == evidence.KindLaunch {
			continue
		}
		switch m.Phase {
		case evidence.PhaseCommunicator:
			if m.Kind == evidence.KindEnd {
				return &t.events[i]
			}
		case evidence.PhaseWeights, evidence.PhaseGraphCompile, evidence.PhaseAutotune, evidence.PhaseGraphCapture:
			if m.Kind == evidence.KindBegin || m.Kind == evidence.KindEnd {
				return &t.events[i]
			}
		}
	}
	return nil
}

// Ended tells whether the log says that a phase has ended, for every rank that
// began it.
func (t *Timeline) Ended(p evidence.Phase) bool {
	ended := false
	for i := range t.Spans {
		if t.Spans[i].Phase == p {
			if t.Spans[i].EndLine == 0 {
				return false
			}
			ended = true
		}
	}
	return ended
}

// Event is the last event of a kind, nil if there is none.
func (t *Timeline) Event(k evidence.Kind) *Event {
	for i := len(t.events) - 1; i >= 0; i-- {
		if t.events[i].Mark.Kind == k {
			return &t.events[i]
		}
	}
	return nil
}

// Value is the last value of a named group in any known line.
func (t *Timeline) Value(group string) (string, *Event) {
	for i := len(t.events) - 1; i >= 0; i-- {
		// A port that a failure names is not the one it listens on.
		if v, ok := t.events[i].Hit.Values[group]; ok && t.events[i].Mark.Kind != evidence.KindFatal {
			return v, &t.events[i]
		}
	}
	return "", nil
}

// weightShare is the share of the weights that the log says are read.
func (t *Timeline) weightShare() (share float64, at []any, ok bool) {
	for i := len(t.events) - 1; i >= 0; i-- {
		ev := &t.events[i]
		if ev.Mark.Phase != evidence.PhaseWeights {
			continue
		}
		if ev.Mark.Kind == evidence.KindEnd {
			return 1, ev.Field("line"), true
		}
		if p, err := strconv.ParseFloat(ev.Hit.Values["percent"], 64); err == nil {
			return p / 100, append(ev.Field("values"), "percent"), true
		}
	}
	return 0, nil, false
}

package diagnose

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// maxStalls is how many stalls are kept with their evidence: the first one, and
// the last ones.
const maxStalls = 8

// stallBook keeps the times in which nothing moved.
type stallBook struct {
	kept    []evidence.Standstill
	leftOut int
	// moved is the last look in which something had moved, last the last look.
	moved, last time.Time
	// open: kept's last one has not ended.
	open bool
}

// begin is for another process: what the one before did last says nothing of it.
func (b *stallBook) begin() { b.moved, b.last = time.Time{}, time.Time{} }

// note takes a cheap look into account.
func (b *stallBook) note(s *screen, j *rules.Judgement) {
	frames := s.r.s.Frames
	if len(frames) == 0 {
		return
	}
	now := frames[len(frames)-1].At
	if b.moved.IsZero() {
		b.moved = frames[0].At
	}
	// The judgement's window forgets a movement only when it is over; a stall
	// begins when the movement ends.
	if n := len(frames); n >= 2 && movesBetween(s.r.s, n-2, n-1) {
		b.moved = now
	}
	b.last = now
	if moves(j) && b.moved == now {
		b.end(now)
	}
}

// quiet is for how long nothing has moved.
func (b *stallBook) quiet() time.Duration { return b.last.Sub(b.moved) }

func (b *stallBook) end(at time.Time) {
	if b.open {
		b.open = false
		b.kept[len(b.kept)-1].Ended = &at
	}
}

// evidence keeps a close look that found no movement.
func (b *stallBook) evidence(j *rules.Judgement) {
	if b.open || !standsStill(j) {
		return
	}
	b.open = true
	if len(b.kept) == maxStalls {
		b.kept = append(b.kept[:1], b.kept[2:]...)
		b.leftOut++
	}
	b.kept = append(b.kept, evidence.Standstill{Began: b.moved, Snapshot: j.Case.Snapshot})
}

// standsStill: nothing moved in a close look, and not because it is ready.
func standsStill(j *rules.Judgement) bool {
	switch j.Verdict {
	case rule.Stalled, rule.Deadlocked, rule.Broken, rule.Unresponsive:
		return true
	case rule.Unknown:
		return !moves(j)
	}
	return false
}

package facts

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Quiet is for how long the log has named nothing new: since its last known
// line that is no heartbeat and no retry. False when that is not known.
//
// It is put together from what no wrong time zone can spoil: how long ago the
// file was written to, and how much later its last line is than that one.
func (t *Timeline) Quiet(s *evidence.Snapshot) (time.Duration, bool) {
	ev := t.LastLine
	if ev == nil || len(ev.At) < 2 {
		return 0, false
	}
	i, ok := ev.At[1].(int)
	if !ok || i < 0 || i >= len(s.Logs) {
		return 0, false
	}
	log := &s.Logs[i]
	if log.Modified.IsZero() {
		return 0, false
	}
	quiet := s.Taken.Sub(log.Modified)
	if ev.Hit.At != nil && log.Last != nil && log.Last.After(*ev.Hit.At) {
		quiet += log.Last.Sub(*ev.Hit.At)
	}
	return max(0, quiet), true
}

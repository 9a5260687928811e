package chat

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// quiet watches for movement while a request waits, and gives up when there is
// none for too long.
type quiet struct {
	last atomic.Int64 // nanoseconds since begin
	from time.Time
	end  chan struct{}
	done chan struct{}
	once sync.Once
}

// watchMoves calls moves ten times in limit (once a second for 10 s), the last
// time when limit is over, and cancels with errGiveUp when neither it nor heard
// reported anything for limit. Without moves it never cancels.
func watchMoves(moves func() bool, limit time.Duration, cancel context.CancelCauseFunc) *quiet {
	q := &quiet{from: time.Now(), end: make(chan struct{}), done: make(chan struct{})}
	if moves == nil {
		close(q.done)
		return q
	}
	go func() {
		defer close(q.done)
		for next := limit / 10; ; {
			select {
			case <-q.end:
				return
			case <-time.After(next):
			}
			if moves() {
				q.heard()
			}
			left := limit - time.Since(q.from) + time.Duration(q.last.Load())
			if left <= 0 {
				cancel(errGiveUp)
				return
			}
			next = min(limit/10, left)
		}
	}()
	return q
}

// heard says that something moved or came just now.
func (q *quiet) heard() { q.last.Store(int64(time.Since(q.from))) }

// stop ends the watch. A call of moves under way is waited for, but not for
// ever.
func (q *quiet) stop() {
	q.once.Do(func() { close(q.end) })
	select {
	case <-q.done:
	case <-time.After(2 * time.Second):
	}
}

package chat

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

func TestWatchMoves(t *testing.T) {
	run := func(t *testing.T, moves func() bool) (q *quiet, ended func() error) {
		ctx, cancel := context.WithCancelCause(context.Background())
		q = watchMoves(moves, 200*time.Millisecond, cancel)
		t.Cleanup(q.stop)
		return q, func() error { <-ctx.Done(); return context.Cause(ctx) }
	}
	t.Run("still", func(t *testing.T) {
		var calls atomic.Int32
		_, ended := run(t, func() bool { calls.Add(1); return false })
		if err := ended(); !errors.Is(err, errGiveUp) || calls.Load() == 0 {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	})
	t.Run("moves, then still", func(t *testing.T) {
		var calls atomic.Int32
		_, ended := run(t, func() bool { return calls.Add(1) < 15 })
		if err := ended(); !errors.Is(err, errGiveUp) || calls.Load() <= 15 {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	})
	t.Run("stopped", func(t *testing.T) {
		var calls atomic.Int32
		q, _ := run(t, func() bool { calls.Add(1); return true })
		q.stop()
		before := calls.Load()
		time.Sleep(60 * time.Millisecond)
		if calls.Load() != before {
			t.Error("moves is called after stop")
		}
	})
	t.Run("not known", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		q := watchMoves(nil, time.Nanosecond, cancel)
		time.Sleep(20 * time.Millisecond)
		if q.stop(); ctx.Err() != nil {
			t.Error("gave up without knowing of movement")
		}
	})
}

package chat

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Limits are how long each part of a request may take. A zero is the default.
type Limits struct {
	// Connect is for the connection, TLS included. Default 5 s.
	Connect time.Duration
	// Headers and FirstToken count from the beginning of the request: several
	// engines send their headers with the first token. Default 120 s: a first
	// request may compile kernels.
	Headers    time.Duration
	FirstToken time.Duration
	// Stall is the longest time between two tokens. Default 30 s.
	Stall time.Duration
	// Request is for the whole. Default 10 min.
	Request time.Duration
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		limit *time.Duration
		is    time.Duration
	}{{&l.Connect, 5 * time.Second}, {&l.Headers, 2 * time.Minute}, {&l.FirstToken, 2 * time.Minute},
		{&l.Stall, 30 * time.Second}, {&l.Request, 10 * time.Minute}} {
		if *d.limit <= 0 {
			*d.limit = d.is
		}
	}
	return l
}

// stage is what a request waits for.
type stage int

const (
	connecting stage = iota
	awaitingHeaders
	awaitingToken
	awaitingMore
	ending // the answer is complete, [DONE] may follow
)

// endingGrace is how long [DONE], the usage chunk or the rest of an error body
// may take once the answer is there: some servers never send it and keep the
// connection open.
const endingGrace = 2 * time.Second

// watch ends a request that waits too long for its next part. Its methods may
// be used from several goroutines.
type watch struct {
	limits Limits
	start  time.Time
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	stage    stage
	since    time.Time // of the stage or of the last token
	deadline time.Time
	headers  time.Duration
	tokens   int
	unit     string
	events   int
	timer    *time.Timer
}

func startWatch(limits Limits, start time.Time, cancel context.CancelCauseFunc) *watch {
	w := &watch{limits: limits, start: start, cancel: cancel, since: start, unit: "chunk"}
	w.deadline = start.Add(limits.Connect)
	w.timer = time.AfterFunc(limits.Connect, w.fire)
	return w
}

// enter says what is waited for from now on.
func (w *watch) enter(s stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s <= w.stage {
		return
	}
	now := time.Now()
	w.stage, w.since = s, now
	switch s {
	case awaitingHeaders:
		w.deadline = w.start.Add(w.limits.Headers)
	case awaitingToken:
		w.headers = now.Sub(w.start)
		w.deadline = w.start.Add(w.limits.FirstToken)
	case ending:
		w.deadline = now.Add(endingGrace)
	}
	w.timer.Reset(max(time.Until(w.deadline), 0))
}

// token says that text came. The timer is not touched for every token: it
// looks for itself when it fires.
func (w *watch) token(at time.Time, count int, unit string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens, w.unit = count, unit
	if w.stage > awaitingMore {
		return
	}
	first := w.stage < awaitingMore
	w.stage, w.since, w.deadline = awaitingMore, at, at.Add(w.limits.Stall)
	if first {
		w.timer.Reset(w.limits.Stall)
	}
}

// heard says that an event without text came.
func (w *watch) heard() {
	w.mu.Lock()
	w.events++
	w.mu.Unlock()
}

func (w *watch) fire() {
	w.mu.Lock()
	left := time.Until(w.deadline)
	if left > 0 {
		w.timer.Reset(left)
	}
	w.mu.Unlock()
	if left <= 0 {
		w.cancel(w.missing())
	}
}

func (w *watch) stop() { w.timer.Stop() }

func (w *watch) elapsed() time.Duration { return time.Since(w.start) }

// complete: only the end of the stream is missing.
func (w *watch) complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage == ending
}

// flowing: text came just now, so that not the model but the time is at fault.
func (w *watch) flowing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stage == awaitingMore && time.Since(w.since) < min(w.limits.Stall, 5*time.Second)
}

func (w *watch) count() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return counted(w.tokens, w.unit)
}

func counted(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// missing is the failure that the part which is waited for does not come.
func (w *watch) missing() *failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	elapsed := time.Since(w.start)
	switch w.stage {
	case connecting:
		if elapsed < 50*time.Millisecond {
			return failuref(requestTimeout, "no time was left for the request")
		}
		return failuref(connectTimeout, "no connection within %s", seconds(elapsed))
	case awaitingHeaders:
		return failuref(headersTimeout, "no headers within %s", seconds(elapsed))
	case awaitingToken:
		if w.events > 0 {
			return failuref(ttftTimeout, "headers after %s and %s without text, but no token within %s", seconds(w.headers), counted(w.events, "event"), seconds(elapsed))
		}
		return failuref(ttftTimeout, "headers after %s, but no token within %s", seconds(w.headers), seconds(elapsed))
	case awaitingMore:
		return failuref(stall, "the stream stalled after %s for %s", counted(w.tokens, w.unit), seconds(time.Since(w.since)))
	}
	return failuref(requestTimeout, "not finished within %s", seconds(elapsed))
}

package probes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Result is what a probe function hands back: what it saw and how it went.
// Name and TookMS of the run are filled in by Run.
type Result[T any] struct {
	Value T
	Run   evidence.ProbeRun
}

// Run calls look in a goroutine of its own and waits for it at most limit. A
// look that does not come back in time is abandoned: its goroutine stays
// behind, whatever it returns later is dropped, and the run is a timeout with
// what was tried in detail. look must not write to anything it shares.
func Run[T any](ctx context.Context, name evidence.ProbeName, limit time.Duration, look func(context.Context) Result[T]) (T, evidence.ProbeRun) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan Result[T], 1)
	go func() { done <- guarded(ctx, look) }()
	var r Result[T]
	select {
	case r = <-done:
	case <-ctx.Done():
		// A look that finished in the same instant still counts.
		select {
		case r = <-done:
		default:
			r.Run.Status = evidence.Timeout
			r.Run.Detail = fmt.Sprintf("no answer within %s; left behind", limit)
			if errors.Is(ctx.Err(), context.Canceled) {
				r.Run.Detail = "interrupted"
			}
		}
	}
	r.Run.Name = name
	r.Run.TookMS = Milliseconds(time.Since(start))
	return r.Value, r.Run
}

// guarded turns a panic in a probe into a failed probe: one bad parser must
// not cost the operator the report.
func guarded[T any](ctx context.Context, look func(context.Context) Result[T]) (r Result[T]) {
	defer func() {
		if p := recover(); p != nil {
			r = Result[T]{Run: evidence.ProbeRun{Status: evidence.Failed, Detail: fmt.Sprintf("whyhang failed here: %v", p)}}
		}
	}()
	return look(ctx)
}

// Milliseconds is d in milliseconds, rounded to a tenth.
func Milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}

// Classify says which status an error of a system call or file operation
// means, and what the kernel said in the words of the C library. A nil error
// is OK.
func Classify(err error) (evidence.Status, string) {
	switch {
	case err == nil:
		return evidence.OK, ""
	case errors.Is(err, context.DeadlineExceeded):
		return evidence.Timeout, "no answer in time"
	case errors.Is(err, fs.ErrPermission):
		return evidence.Denied, kernelSaid(err)
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, errors.ErrUnsupported):
		return evidence.Unsupported, kernelSaid(err)
	}
	return evidence.Failed, kernelSaid(err)
}

// kernelSaid is the innermost errno of err in words, or err's own text.
func kernelSaid(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

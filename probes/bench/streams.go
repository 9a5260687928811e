package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// warmUp sends the request that is thrown away. It also finds out which
// fields the server takes and whether it counts its tokens. False ends the
// run.
func (r *runner) warmUp(ctx context.Context) bool {
	r.tell("warm-up, %d tokens", warmUpTokens)
	e := r.ask(ctx, warmUpPrompt, warmUpTokens, max(firstRequest, r.FirstToken))
	const continuous = "continuous_usage_stats"
	if e.ErrorType == "" && e.TokenCountSource == countChunks && !slices.Contains(r.without, continuous) {
		// Some servers count only when asked in the plain way.
		r.without = append(r.without, continuous)
		e = r.ask(ctx, warmUpPrompt, warmUpTokens, r.FirstToken)
	}
	if why := stopped(ctx); why != nil {
		r.end(why, "the warm-up")
	} else if e.ErrorType != "" {
		r.end(errFailed, "the warm-up failed: "+failureText(&e))
	}
	return r.stop == nil
}

// firstRequest is how long the first token of the first request may take: a
// server that skipped its own warm-up compiles kernels then.
const firstRequest = 2 * time.Minute

// streams sends the measured prompts: minStreams of them, and more while the
// rates scatter and the budget allows.
func (r *runner) streams(ctx context.Context) {
	s := &r.bench.SingleStream
	r.begun = time.Now()
	for i, prompt := range prompts {
		extra := i >= minStreams
		if extra && !r.oneMore(ctx) {
			break
		}
		r.tell("stream %d of %d, %d tokens", i+1, max(minStreams, i+1), streamTokens)
		started := time.Since(r.begun).Seconds()
		e := r.ask(ctx, prompt, streamTokens, r.FirstToken)
		r.ended = time.Now()
		if why := stopped(ctx); why != nil && e.ErrorType != "" {
			// Cut off by us: neither a failure nor a short success.
			if rate, ok := decodeRate(&e); ok {
				s.CutTokS = &rate
			}
			if !extra {
				r.end(why, fmt.Sprintf("stream %d of %d", i+1, minStreams))
			}
			break
		}
		s.NumPrompts++
		s.Errors = append(s.Errors, failureText(&e))
		if e.ErrorType == "" {
			r.complete(e, started)
			continue
		}
		if s.Failed++; s.Failed > 1 {
			break // what fails twice fails again
		}
	}
	if s.Failed > 0 && r.stop == nil {
		r.end(errFailed, fmt.Sprintf("%d of %d streams failed: %s", s.Failed, s.NumPrompts, lastError(s.Errors)))
	}
	r.bench.Complete = r.stop == nil
}

// complete takes a stream that ended as it should.
func (r *runner) complete(e evidence.Exchange, started float64) {
	r.done = append(r.done, e)
	r.starts = append(r.starts, started)
	if e.FinishReason != "length" {
		r.bench.SingleStream.NumEarlyStopped++
	}
	if rate, ok := decodeRate(&e); ok {
		r.rates = append(r.rates, rate)
		r.tell("%.1f tok/s", rate)
	}
}

// oneMore says whether another stream would sharpen the result and fits into
// the budget.
func (r *runner) oneMore(ctx context.Context) bool {
	if len(r.done) < minStreams {
		return false
	}
	e := estimate(r.rates)
	undecided := func(rate float64) bool { return e.CILow < rate && rate < e.CIHigh }
	if !scatters(e) && !slices.ContainsFunc(r.Against, undecided) {
		return false
	}
	var took []float64
	for i := range r.done {
		took = append(took, r.done[i].E2ELMS)
	}
	deadline, _ := ctx.Deadline()
	return float64(time.Until(deadline).Milliseconds()) > 1.2*quantile(0.5, took)
}

// failureText is empty for a stream that ended as it should.
func failureText(e *evidence.Exchange) string {
	if e.ErrorType == "" {
		return ""
	}
	return e.ErrorType + ": " + e.Error
}

func lastError(errors []string) string {
	for _, e := range slices.Backward(errors) {
		if e != "" {
			return e
		}
	}
	return ""
}

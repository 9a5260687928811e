package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Options are what a benchmark needs to know.
type Options struct {
	Client *chat.Client
	// Model is the id that the server answers to.
	Model string
	// Backend is the engine's ID, Label a free word; both are only reported.
	Backend, Label string
	// Budget is the hard limit of the whole run. Default 60 s.
	Budget time.Duration
	// Against are decode rates that the result will be held against: while the
	// confidence interval reaches over one of them, another stream is run.
	Against []float64
	// Stall is the longest pause between two tokens, default 10 s; FirstToken
	// the longest time to the first one, default 30 s (120 s for the warm-up,
	// which may compile kernels).
	Stall, FirstToken time.Duration
	// Progress, if not nil, is told what is measured next.
	Progress func(string)
}

// What can end a run early.
var (
	errBudget      = errors.New("the budget ran out")
	errInterrupted = errors.New("interrupted")
	errFailed      = errors.New("streams failed")
)

// runner is one benchmark under way.
type runner struct {
	Options
	bench *evidence.Bench
	run   string
	n     int // requests so far
	// stop is why the run ended early, nil if it did not.
	stop error
	// without are the request fields the server refused.
	without []string
	// begun is when the first measured stream started; done are the completed
	// streams and starts their beginnings in seconds since begun.
	begun  time.Time
	ended  time.Time
	done   []evidence.Exchange
	starts []float64
	rates  []float64
}

// SingleStream measures one stream at a time. The Bench is never nil; it is
// complete only if all planned streams were. When the budget runs out or ctx
// ends, the request under way is cancelled on the server by closing its
// connection.
func SingleStream(ctx context.Context, o Options) (*evidence.Bench, evidence.ProbeRun) {
	start := time.Now()
	r := &runner{Options: o.withDefaults(), run: runID()}
	r.bench = &evidence.Bench{Date: start.Format("20060102-150405"), Backend: o.Backend, EndpointType: "openai-chat",
		Label: r.Label, ModelID: o.Model, BaseURL: o.Client.PublicURL()}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Budget, errBudget)
	defer cancel()
	if r.warmUp(ctx) {
		r.streams(ctx)
	}
	r.summarise()
	r.bench.TookMS = probes.Milliseconds(time.Since(start))
	return r.bench, r.probeRun()
}

func (o Options) withDefaults() Options {
	if o.Label == "" {
		o.Label = "whyhang"
	}
	if o.Budget <= 0 {
		o.Budget = time.Minute
	}
	if o.Stall <= 0 {
		o.Stall = 10 * time.Second
	}
	if o.FirstToken <= 0 {
		o.FirstToken = 30 * time.Second
	}
	return o
}

func (r *runner) tell(format string, args ...any) {
	if r.Progress != nil {
		r.Progress("benchmark: " + fmt.Sprintf(format, args...))
	}
}

func (r *runner) warn(format string, args ...any) {
	r.bench.Warnings = append(r.bench.Warnings, fmt.Sprintf(format, args...))
}

// ask sends one prompt.
func (r *runner) ask(ctx context.Context, prompt string, tokens int, firstToken time.Duration) evidence.Exchange {
	r.n++
	e := r.Client.Do(ctx, chat.Request{
		Model: r.Model, Prompt: withNonce(r.run, r.n, prompt), MaxTokens: tokens,
		IgnoreEOS: true, ContinuousUsage: true, Without: r.without,
		ID:     fmt.Sprintf("whyhang-%s-%d", r.run, r.n),
		Limits: chat.Limits{Headers: firstToken, FirstToken: firstToken, Stall: r.Stall, Request: r.Budget + time.Second},
	})
	r.without = e.Fallbacks
	return e
}

// end notes why the run ends early and says so in the report.
func (r *runner) end(why error, where string) {
	r.stop = why
	switch why {
	case errBudget:
		r.bench.Stopped = fmt.Sprintf("the budget of %s ran out in %s", r.Budget, where)
	case errInterrupted:
		r.bench.Stopped = "interrupted in " + where
	default:
		r.bench.Stopped = where
	}
}

// stopped is what ended ctx, nil if it goes on.
func stopped(ctx context.Context) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errBudget):
		return errBudget
	}
	return errInterrupted
}

// probeRun says how the probe went.
func (r *runner) probeRun() evidence.ProbeRun {
	run := evidence.ProbeRun{Name: evidence.ProbeBench, Status: evidence.OK, TookMS: r.bench.TookMS, Detail: r.bench.Stopped}
	switch {
	case r.stop == nil:
	case len(r.done) > 0:
		run.Status = evidence.Partial
	case r.stop == errBudget:
		run.Status = evidence.Timeout
	case r.stop == errInterrupted:
		run.Status = evidence.Skipped
	default:
		run.Status = evidence.Failed
	}
	if r.stop == errBudget {
		run.Hint = "run whyhang again with a larger --bench-budget"
	}
	return run
}

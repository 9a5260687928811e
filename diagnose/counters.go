package diagnose

import (
	"context"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/counters"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

const (
	// countersPause is the time between two readings while the server is asked,
	// maxCounterLooks the most of them.
	countersPause   = 3 * time.Second
	maxCounterLooks = 60
	// countersGap is how long a server that runs requests and may not be asked is
	// given to show that tokens move.
	countersGap = 6 * time.Second
)

// countersWatch reads the engine's own counters. Nil: nothing is read.
type countersWatch struct {
	reader *counters.Reader
	last   time.Time
}

func newCountersWatch(client *chat.Client, j *rules.Judgement) *countersWatch {
	return &countersWatch{reader: &counters.Reader{Client: client, Engine: j.Case.Engine.ID()}}
}

// look reads the counters once and says what they were.
func (w *countersWatch) look(ctx context.Context, r *run, during string) *evidence.CounterLook {
	if w == nil || len(r.s.Counters) >= maxCounterLooks {
		return nil
	}
	since := probes.Milliseconds(time.Since(r.firstLook))
	look, run := w.reader.Read(ctx)
	w.last = time.Now()
	if ctx.Err() != nil && look == nil {
		return nil
	}
	r.note(run)
	if look == nil {
		return nil
	}
	look.SinceMS, look.During = since, during
	r.s.Counters = append(r.s.Counters, *look)
	return look
}

// again reads once more while the server is asked, if a while has passed. Where
// the first reading came to nothing, others would as well.
func (w *countersWatch) again(ctx context.Context, r *run) {
	if w != nil && len(r.s.Counters) > 0 && time.Since(w.last) >= countersPause {
		w.look(ctx, r, "check")
	}
}

// countersAlone reads the counters of a server that may be talked to and not be
// asked: twice, with time between the two if requests run.
func (r *run) countersAlone(ctx context.Context, j *rules.Judgement) {
	if r.Passive || !r.NoCheck || !r.alive() || r.URL == "" && j.Case.Door.URL == "" {
		return
	}
	client, err := r.client(ctx, j)
	if err != nil {
		return
	}
	w := newCountersWatch(client, j)
	w.look(ctx, r, "")
	w.watch(ctx, r, "")
}

// watch looks on for countersGap if requests run: whether tokens move.
func (w *countersWatch) watch(ctx context.Context, r *run, during string) {
	n := len(r.s.Counters)
	if n == 0 || r.s.Counters[n-1].Running == nil || *r.s.Counters[n-1].Running == 0 {
		return
	}
	for until := time.Now().Add(countersGap); time.Now().Before(until) && ctx.Err() == nil; {
		pause(ctx, countersGap/4)
		w.look(ctx, r, during)
		r.frame(ctx, frameOptions{during: during})
	}
}

package diagnose

import (
	"context"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/probes/socket"
	"github.com/whyhang/whyhang/rules"
)

// run is one diagnosis under way.
type run struct {
	Options
	reader *process.Reader
	start  time.Time
	// firstLook is when the first frame was begun: frames count from it.
	firstLook time.Time
	s         *evidence.Snapshot
	tree      process.TreeOptions
	gpu       gpuWatch
	log       logWatch
	caches    cacheWatch
	limits    limitsWatch
	own       *socket.OwnPorts
	// headers are those of the model files, which lie where the process
	// weightsPID sees them.
	headers    headersWatch
	weightsPID int
	// knocked is when the server was last asked for its models, listed that it
	// gave them.
	knocked time.Time
	listed  bool
}

// Run diagnoses a process. The error is of whyhang itself; whatever is wrong
// with the server or with reading it is in the judgement.
func Run(ctx context.Context, o Options) (*rules.Judgement, error) {
	reader, err := process.NewReader(o.Proc)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	r := newRun(o, reader)
	defer r.close()

	if !r.find(ctx) {
		return r.judge(), nil
	}
	r.startSlowProbes(ctx)
	r.look(ctx)
	j := r.watch(ctx)
	if err := r.log.asked(); err != nil {
		return nil, err
	}
	if r.mayAsk(ctx, j) {
		r.ask(ctx, j)
	} else {
		r.note(evidence.ProbeRun{Name: evidence.ProbeCheck, Status: evidence.Skipped, Detail: r.whyNotAsked(j)})
		r.countersAlone(ctx, j)
	}
	r.collect(ctx)
	r.headers.end(r)
	r.s.Interrupted = ctx.Err() != nil
	return r.judge(), nil
}

func newRun(o Options, reader *process.Reader) *run {
	return &run{Options: o, reader: reader, start: time.Now(), own: &socket.OwnPorts{},
		s: &evidence.Snapshot{Schema: evidence.SnapshotSchema, Tool: o.Tool, Asked: o.asked(), Host: reader.Host()}}
}

// judge closes the snapshot and judges it.
func (r *run) judge() *rules.Judgement {
	r.s.Taken = time.Now()
	r.s.TookMS = probes.Milliseconds(time.Since(r.start))
	thin(r.s)
	return rules.Judge(r.s)
}

func (r *run) close() {
	r.gpu.close()
	r.log.close()
	r.caches.close()
	r.limits.close()
	r.headers.close()
}

// note adds how a probe went. A second run of the same probe replaces the
// first, unless it went better: the report shows the worst.
func (r *run) note(p evidence.ProbeRun) {
	for i := range r.s.Probes {
		if r.s.Probes[i].Name != p.Name {
			continue
		}
		took := r.s.Probes[i].TookMS + p.TookMS
		if worse(p.Status, r.s.Probes[i].Status) {
			r.s.Probes[i] = p
		}
		r.s.Probes[i].TookMS = took
		return
	}
	r.s.Probes = append(r.s.Probes, p)
}

// badness orders statuses by how much of the evidence they cost.
var badness = map[evidence.Status]int{evidence.OK: 0, evidence.Skipped: 1, evidence.Partial: 2, evidence.Unsupported: 3, evidence.Denied: 4, evidence.Failed: 5, evidence.Timeout: 6}

func worse(a, b evidence.Status) bool { return badness[a] > badness[b] }

package diagnose

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/gpu"
	"github.com/whyhang/whyhang/probes/serverlog"
	"github.com/whyhang/whyhang/rules/engines"
)

// scanLimit is how long reading the whole log may take; the run goes on
// watching meanwhile.
const scanLimit = 2 * time.Minute

// gpuWatch asks the GPU driver in the background.
type gpuWatch struct {
	mu    sync.Mutex
	probe *gpu.Probe
	done  chan struct{}
	first struct {
		gpu    *evidence.GPU
		frames []evidence.GPUFrame
		run    evidence.ProbeRun
	}
	taken bool
}

// logWatch reads the log in the background and follows it.
type logWatch struct {
	named      string
	poll       time.Duration
	reader     *serverlog.Reader
	done       chan struct{}
	candidates []serverlog.Candidate
	logs       []evidence.Log
	unread     []evidence.Unread
	run        evidence.ProbeRun
	taken      bool
}

// startSlowProbes starts what may take seconds: the driver, the log, the
// caches and the file systems.
func (r *run) startSlowProbes(ctx context.Context) {
	r.gpu.start(ctx, r.Proc, pids(r.s.Processes))
	r.log.start(ctx, r)
	r.caches.start(ctx, r)
	r.limits.start(ctx, r)
}

func (g *gpuWatch) start(ctx context.Context, procDir string, tree []int) {
	g.done = make(chan struct{})
	go func() {
		defer close(g.done)
		probe, err := gpu.Start(procDir)
		if err != nil {
			g.first.run = evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.Failed, Detail: err.Error()}
			return
		}
		g.mu.Lock()
		g.probe = probe
		g.mu.Unlock()
		g.first.gpu, g.first.frames, g.first.run = probe.Devices(ctx, tree)
	}()
}

// look is what moves of the GPUs, if the driver has answered before.
func (g *gpuWatch) look(ctx context.Context, r *run) []evidence.GPUFrame {
	select {
	case <-g.done:
	default:
		return nil
	}
	if !g.taken {
		g.taken = true
		r.s.GPU = g.first.gpu
		r.note(g.first.run)
		return g.first.frames
	}
	if g.first.gpu == nil || len(g.first.gpu.Devices) == 0 {
		return nil
	}
	frames := g.probe.Look(ctx)
	if run, stuck := g.probe.Status(); stuck != nil {
		r.note(run)
		r.s.GPU.Child = stuck
	}
	return frames
}

func (g *gpuWatch) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.probe != nil {
		g.probe.Close()
	}
}

func (l *logWatch) start(ctx context.Context, r *run) {
	l.done, l.named = make(chan struct{}), r.Log
	l.candidates = []serverlog.Candidate{serverlog.Named(r.Log)}
	if r.Log == "" {
		l.candidates, l.unread = serverlog.Find(procDir(r.Proc), r.s.Processes)
	}
	go func() {
		defer close(l.done)
		l.run = evidence.ProbeRun{Name: evidence.ProbeLog, Status: evidence.Failed}
		if len(l.candidates) == 0 {
			l.run = serverlog.NotFound(l.unread)
			return
		}
		reader, err := serverlog.Start(append(engines.Signatures(), r.Signatures...), engines.Formats(), l.poll)
		if err != nil {
			l.run.Detail = err.Error()
			return
		}
		l.reader = reader
		ctx, cancel := context.WithTimeout(ctx, scanLimit)
		defer cancel()
		l.logs, l.run = reader.Scan(ctx, l.candidates)
	}()
}

// ready tells whether the whole log has been read, or cannot be.
func (l *logWatch) ready() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// look takes the log over once it is read, and then what is new in it.
func (l *logWatch) look(ctx context.Context, r *run) []evidence.LogFrame {
	if !l.ready() {
		return nil
	}
	if !l.taken {
		l.taken = true
		l.give(r)
		r.note(l.run)
	}
	if l.reader == nil || len(l.logs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	frames := l.reader.Frame(ctx)
	if l.grown(frames) {
		// Only what is new is read; the ready line may be in it.
		if logs, _ := l.reader.Scan(ctx, l.candidates); len(logs) == len(l.logs) {
			l.logs = logs
			l.give(r)
		}
	}
	return frames
}

// give makes the logs part of the evidence.
func (l *logWatch) give(r *run) {
	r.s.Logs = l.logs
	if len(r.s.Logs) > 0 {
		r.s.Logs[0].Unread = append(r.s.Logs[0].Unread, l.unread...)
	}
}

// grown tells whether a log holds more than what was read of it.
func (l *logWatch) grown(frames []evidence.LogFrame) bool {
	for _, f := range frames {
		for i := range l.logs {
			if l.logs[i].Path == f.Path && l.logs[i].SizeBytes != f.SizeBytes {
				return true
			}
		}
	}
	return false
}

// asked is the error of a log that the operator named and that cannot be read:
// going on without it would look as if it held nothing.
func (l *logWatch) asked() error {
	if l.named == "" || !l.ready() || len(l.logs) > 0 || l.run.Status == evidence.Timeout {
		return nil
	}
	return fmt.Errorf("--log %s", l.run.Detail)
}

func (l *logWatch) close() {
	if l.done != nil && l.ready() && l.reader != nil {
		l.reader.Close()
	}
}

func procDir(dir string) string {
	if dir == "" {
		return "/proc"
	}
	return dir
}

// pids are all numbers the processes go by, in their own namespaces too: a
// driver may name either.
func pids(procs []evidence.Process) []int {
	var all []int
	for i := range procs {
		all = append(all, procs[i].PID)
		for _, n := range procs[i].NSPID {
			if n != procs[i].PID {
				all = append(all, n)
			}
		}
	}
	return all
}

func itoa(n int) string { return strconv.Itoa(n) }

// collect waits for what is still under way, at most until its own limit, and
// takes it over.
func (r *run) collect(ctx context.Context) {
	for _, w := range []struct {
		what string
		done chan struct{}
	}{{"the GPU driver", r.gpu.done}, {"the log", r.log.done}, {"the kernel's log and the file systems", r.limits.done}} {
		select {
		case <-w.done:
			continue
		default:
			r.tell("wait for " + w.what)
		}
		select {
		case <-w.done:
		case <-ctx.Done():
		}
	}
	if !r.gpu.taken || !r.log.taken || !r.limits.taken {
		r.frame(ctx, frameOptions{})
	}
	for name, taken := range map[evidence.ProbeName]bool{evidence.ProbeGPU: r.gpu.taken, evidence.ProbeLog: r.log.taken, evidence.ProbeKernel: r.limits.taken} {
		if !taken {
			r.note(evidence.ProbeRun{Name: name, Status: evidence.Timeout, Detail: "interrupted", TookMS: probes.Milliseconds(time.Since(r.start))})
		}
	}
}

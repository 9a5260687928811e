package diagnose

import (
	"context"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/probes/socket"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// The rhythm of the looks. A proof needs two looks some 100 ms apart; a rate
// needs points closer together than the bursts of a loader; a doubtful case
// has time.
const (
	proofGap  = 110 * time.Millisecond
	earlyStep = 250 * time.Millisecond
	earlyFor  = 3 * time.Second
	lateStep  = time.Second
)

// manyThreads is the number of threads beyond which they are looked at less
// often: a pass costs some 40 microseconds a thread, here and in the kernel.
const manyThreads = 2000

// look takes the first looks: sockets, threads, lock words.
func (r *run) look(ctx context.Context) {
	r.tell("look at threads, locks and sockets")
	sockets, run := r.sockets()
	r.s.Sockets = sockets
	r.note(run)
	r.meetings()
	r.frame(ctx, frameOptions{locks: true})
}

// sockets are those of the tree as they are now.
func (r *run) sockets() (*evidence.Sockets, evidence.ProbeRun) {
	return socket.Look(procDir(r.Proc), r.s.Processes, facts.EngineOf(r.s.Processes).Port)
}

// lookAgain reads the sockets anew at the end of a window in which nothing was
// decided: who was missing at its beginning may have come.
func (r *run) lookAgain() {
	if sockets, run := r.sockets(); sockets != nil {
		r.s.Sockets = sockets
		r.note(run)
	}
	r.meetings()
}

// meetings looks whether the addresses at which ranks are to meet are served.
// The log may name some that the command line does not.
func (r *run) meetings() {
	if r.s.Sockets == nil {
		return
	}
	var addresses []string
	for _, m := range facts.Of(r.s).Meetings {
		addresses = append(addresses, m.Address)
	}
	r.s.Sockets.Endpoints = socket.Endpoints(procDir(r.Proc), r.s.Sockets, addresses)
}

// watch looks until it is known what happens, at most for the window.
func (r *run) watch(ctx context.Context) *rules.Judgement {
	begin := time.Now()
	pause(ctx, proofGap)
	r.frame(ctx, frameOptions{locks: true})
	for {
		j := r.sofar()
		r.headers.look(ctx, r, j)
		if r.known(ctx, j) || ctx.Err() != nil || !r.alive() {
			return j
		}
		if r.log.asked() != nil {
			return j // no verdict without the log that was named
		}
		since := time.Since(begin)
		if since >= r.Window && r.log.ready() {
			r.lookAgain()
			r.twice(ctx, "")
			return r.sofar()
		}
		r.tell(watching(j, since))
		step := earlyStep
		if since > earlyFor {
			step = lateStep
		}
		pause(ctx, min(step, max(r.Window-since, 10*time.Millisecond)))
		r.frame(ctx, frameOptions{threads: r.threadsNow(since)})
	}
}

func watching(j *rules.Judgement, since time.Duration) string {
	s := "watch for movement, " + since.Round(100*time.Millisecond).String()
	if j.Verdict != rule.Unknown {
		s += ": looks like " + string(j.Verdict)
	}
	return s
}

// known tells whether looking longer would change nothing: the verdict is
// settled, or the server is up and can be asked.
func (r *run) known(ctx context.Context, j *rules.Judgement) bool {
	if !r.log.ready() && j.Verdict != rule.Deadlocked && j.Verdict != rule.Gone {
		return false // the log may hold the ready line, or the phase
	}
	return j.Settled || r.mayAsk(ctx, j)
}

// sofar judges what has been seen until now.
func (r *run) sofar() *rules.Judgement {
	r.s.Taken = time.Now()
	return rules.Judge(r.s)
}

// threadsNow spreads the looks at threads: the last one counts, and nobody
// knows yet which that is.
func (r *run) threadsNow(since time.Duration) bool {
	threads := 0
	last := time.Duration(0)
	for i := range r.s.Frames {
		n := 0
		for j := range r.s.Frames[i].Processes {
			n += len(r.s.Frames[i].Processes[j].Threads)
		}
		if n > 0 {
			threads, last = n, time.Duration(r.s.Frames[i].SinceMS)*time.Millisecond
		}
	}
	gap := time.Second
	if threads > manyThreads {
		gap = 5 * time.Second
	}
	return since-last >= gap
}

// twice takes two looks at the locks, far enough apart for a proof.
func (r *run) twice(ctx context.Context, during string) {
	r.frame(ctx, frameOptions{locks: true, during: during})
	pause(ctx, proofGap)
	r.frame(ctx, frameOptions{locks: true, during: during})
}

// frameOptions say what a look takes in beside the counters: the threads, or
// the threads and the lock words they sleep on.
type frameOptions struct {
	threads, locks bool
	during         string
}

// frame takes one look at everything that moves.
func (r *run) frame(ctx context.Context, o frameOptions) {
	begin := time.Now()
	f := evidence.Frame{At: begin, During: o.during}
	if r.firstLook.IsZero() {
		r.firstLook = begin
	} else {
		f.SinceMS = probes.Milliseconds(begin.Sub(r.firstLook))
		r.s.Processes = r.reader.Refresh(ctx, r.s.Processes, r.tree)
	}
	if o.locks {
		var threads, waits evidence.ProbeRun
		var look evidence.WaitLook
		f.Processes, threads, look, waits = r.reader.Pass(ctx, r.s.Processes, process.LookOptions{Stacks: len(r.s.Waits) > 0})
		r.note(threads)
		r.note(waits)
		r.keepWaits(look)
	} else {
		var run evidence.ProbeRun
		f.Processes, run = r.reader.Look(ctx, r.s.Processes, process.LookOptions{Threads: o.threads})
		r.note(run)
	}
	if o.threads || o.locks {
		f.Storage, f.StorageLooked = r.reader.StorageWaits(ctx, r.s.Processes, f.Processes), true
	}
	if r.s.Sockets != nil {
		f.Sockets = socket.Frame(procDir(r.Proc), r.s.Sockets, r.own.Set())
	}
	f.GPUs = r.gpu.look(ctx, r)
	f.Logs = r.log.look(ctx, r)
	f.Caches = r.caches.look(r)
	f.Kernel = r.limits.look(ctx, r)
	f.PageCache = r.headers.pages.look(r.s)
	f.TookMS = probes.Milliseconds(time.Since(begin))
	if ctx.Err() != nil && len(f.Processes) == 0 && len(r.s.Frames) > 0 {
		return // the interruption came first: an empty look says nothing
	}
	r.s.Frames = append(r.s.Frames, f)
	r.noticeEnd(&f)
}

// noticeEnd takes down that the target has ended.
func (r *run) noticeEnd(f *evidence.Frame) {
	i := facts.ProcessAt(f, r.s.Target.PID)
	if i < 0 || facts.Lives(f.Processes[i].State) {
		return
	}
	t := r.reader.Find(r.s.Target.PID)
	gone := time.Now()
	r.s.Target.Gone = &gone
	r.s.Target.State = evidence.TargetExited
	r.s.Target.WaitStatus = f.Processes[i].WaitStatus
	if t.State == evidence.TargetZombie {
		r.s.Target.WaitStatus, r.s.Target.ParentPID, r.s.Target.ParentName = t.WaitStatus, t.ParentPID, t.ParentName
	}
}

func (r *run) alive() bool { return r.s.Target.State == evidence.TargetAlive }

// keepWaits keeps the first reading of the lock words, which says since when a
// thing is so, and the last two, which prove that it is.
func (r *run) keepWaits(look evidence.WaitLook) {
	r.s.Waits = append(r.s.Waits, look)
	if n := len(r.s.Waits); n > 3 {
		r.s.Waits = append(r.s.Waits[:1], r.s.Waits[n-2:]...)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// thin drops the threads of the frames between the first and the last that
// looked at them: rules compare these two, and 5,000 threads in a dozen frames
// make a snapshot nobody wants to keep.
func thin(s *evidence.Snapshot) {
	first, last := facts.ThreadLooks(s, 0, len(s.Frames)-1)
	for i := first + 1; i < last; i++ {
		for j := range s.Frames[i].Processes {
			s.Frames[i].Processes[j].Threads = nil
		}
	}
}

package process

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// How long one process may take in a phase of a reading of lock words. It
// takes milliseconds; on a host with ten times more work than CPUs, a second.
const (
	sleepersLimit = 5 * time.Second
	wordsLimit    = 3 * time.Second
)

// Pass looks at everything that moves, threads and all, and reads the words
// that the threads of all these processes sleep on: first a look A at every
// thread (the frames), then all words, then a look B at those threads. A thread whose looks are equal, in syscall line, run time and
// number of times on a CPU, slept in that one call from A to B. All words were
// read in between, so for such threads they were true at one instant, across
// processes too. The three phases must not be mixed, process by process or
// otherwise.
//
// Every thread in a futex call is in the waits, also those with a timeout, and
// every thread in another call that a named process must end; one that ended
// before B has an empty B.
func (r *Reader) Pass(ctx context.Context, procs []evidence.Process, o LookOptions) (frames []evidence.ProcessFrame, threads evidence.ProbeRun, look evidence.WaitLook, waits evidence.ProbeRun) {
	start := time.Now()
	o.Threads = true
	h := newHeld()
	seen := each(ctx, len(procs), lookLimit, func(i int) seenProcess { return r.lookAt(&procs[i], o, h) })
	look, waits = r.waits(ctx, procs, seen, o.Stacks)
	for i := range seen {
		seen[i].Value.sleepers.release()
	}
	frames, threads = r.framesOf(ctx, procs, seen, o, start)
	return frames, threads, look, waits
}

// Waits is Pass with all stacks and without the frames.
func (r *Reader) Waits(ctx context.Context, procs []evidence.Process) (evidence.WaitLook, evidence.ProbeRun) {
	_, _, look, run := r.Pass(ctx, procs, LookOptions{Stacks: true})
	return look, run
}

// waits reads the words and takes look B, after look A.
func (r *Reader) waits(ctx context.Context, procs []evidence.Process, seen []answer[seenProcess], stacks bool) (evidence.WaitLook, evidence.ProbeRun) {
	start := time.Now()
	look := evidence.WaitLook{At: start}
	t := r.newTally(procs)
	a := make([]answer[sleepers], len(seen))
	for i := range seen {
		a[i] = answer[sleepers]{seen[i].Value.sleepers, seen[i].Done, seen[i].Why}
	}
	var blocked blockers
	var scan sync.WaitGroup
	scan.Go(func() { blocked = r.blockers(ctx, procs, a, stacks) })
	words := each(ctx, len(procs), wordsLimit, func(i int) wordsOf { return r.words(&procs[i], a[i].Value, stacks) })
	scan.Wait()
	for i := range words {
		seen[i].Value.maps = words[i].Value.maps
	}
	b := each(ctx, len(procs), sleepersLimit, func(i int) lookB { return r.lookAgain(&procs[i], a[i].Value) })

	// Nothing below reads a word: who is meant by them does not change.
	o := newOwners(ctx, r, procs, a)
	callers := newCallers(ctx, r)
	for i := range procs {
		p, s := &procs[i], a[i].Value
		if !a[i].Done {
			t.lateFor(p.PID, a[i].Why)
			continue
		}
		if s.denied {
			t.deny(p.PID, "syscall")
		}
		if words[i].Value.denied {
			t.deny(p.PID, "mem")
		}
		look.Processes = append(look.Processes, evidence.WaitProcess{PID: p.PID, Threads: len(s.tids), ThreadsAfter: b[i].Value.threads, Caught: b[i].Value.caught})
		if py := words[i].Value.python; py != nil {
			o.python(i, py)
			look.Python = append(look.Python, *py)
		}
		for n, sl := range s.waiting {
			w := evidence.Wait{PID: p.PID, TID: sl.tid, A: sl.look, B: b[i].Value.looks[sl.tid], Futex: sl.futex, Blocked: blocked.of(i, n)}
			if w.Futex != nil {
				o.futex(i, n, w.Futex, words[i], callers)
			}
			look.Waits = append(look.Waits, w)
		}
		if why := words[i].Why + words[i].Value.failed; why != "" && !words[i].Value.denied && len(s.waiting) > 0 {
			t.lateFor(p.PID, "memory: "+why)
		}
	}
	r.sites(ctx, procs, a, words, look.Waits)
	r.sinceWhen(look.Waits)
	run := t.run(evidence.ProbeWaits)
	run.TookMS = probes.Milliseconds(time.Since(start))
	return look, run
}

// sleepers are the threads of one process that sleep in a call that another
// thread must end.
type sleepers struct {
	waiting []sleeper
	// tids are all threads, living at the time of the look.
	tids   []int
	via    int
	denied bool
	// naps: one of them sleeps for a time (nanosleep(2)): what it sleeps between
	// stands in Python's stack alone.
	naps bool
}

type sleeper struct {
	tid  int
	look evidence.ThreadLook
	call call
	// One of these is what the thread waits for, as far as the call says it.
	futex   *evidence.Futex
	blocked *evidence.Blocked
	// files are open for look B if kept.
	files threadFiles
	kept  bool
}

// lookB is look B at the sleepers of one process, by thread, and how many
// threads the process has then.
type lookB struct {
	looks   map[int]evidence.ThreadLook
	threads int
	caught  []int
}

// lookAgain is look B.
func (r *Reader) lookAgain(p *evidence.Process, s sleepers) lookB {
	b := lookB{looks: make(map[int]evidence.ThreadLook, len(s.waiting))}
	tasks, err := openTasks(r.dir, p.PID)
	if err != nil {
		return b
	}
	defer tasks.close()
	at := make([]int, len(s.waiting))
	for i := range at {
		at[i] = i
	}
	type seen struct {
		tid  int
		look evidence.ThreadLook
	}
	for _, v := range overThreads(tasks, at, func(d *taskDir, i int) (seen, bool) {
		look, ok := d.again(&s.waiting[i])
		return seen{s.waiting[i].tid, look}, ok
	}) {
		b.looks[v.tid] = v.look
	}
	tids, _ := tasks.list()
	b.threads = len(tids)
	if st, err := readStatus(r.base(p.PID, s.via), make([]byte, statusFileSize)); err == nil {
		for n := range 64 {
			if st.Caught&(1<<n) != 0 {
				b.caught = append(b.caught, n+1)
			}
		}
	}
	return b
}

// again reads schedstat and then the system call, the order that makes two
// equal looks a proof of sleep, and then the state: a stopped or frozen thread
// still shows the system call it was in.
func (d *taskDir) again(s *sleeper) (evidence.ThreadLook, bool) {
	files := s.files
	if !s.kept {
		files = d.open(strconv.Itoa(s.tid), true)
		defer files.close()
	}
	var look evidence.ThreadLook
	if sched, ok := d.schedstat(files); ok {
		look.RunNS, look.Slices = &sched.Run, &sched.Slices
	}
	b, err := d.syscallLine(files, true)
	if err != nil {
		return look, false
	}
	look.Syscall = string(b)
	st, ok := d.stat(files)
	look.State = string(st.State)
	return look, ok
}

package process

import (
	"context"
	"strconv"
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

// Waits reads the words that the threads of all these processes sleep on:
// first a look A at every thread, then all words, then a look B at the same
// threads. A thread whose looks are equal, in syscall line, run time and
// number of times on a CPU, slept in that one call from A to B. All words were
// read in between, so for such threads they were true at one instant, across
// processes too. The three phases must not be mixed, process by process or
// otherwise.
//
// Every thread in a futex call is in the result, also those with a timeout;
// one that ended before B has an empty B.
func (r *Reader) Waits(ctx context.Context, procs []evidence.Process) (evidence.WaitLook, evidence.ProbeRun) {
	start := time.Now()
	look := evidence.WaitLook{At: start}
	t := r.newTally(procs)

	a := each(ctx, len(procs), sleepersLimit, func(i int) sleepers { return r.sleepersOf(&procs[i]) })
	words := each(ctx, len(procs), wordsLimit, func(i int) wordsOf { return r.words(&procs[i], a[i].Value) })
	b := each(ctx, len(procs), sleepersLimit, func(i int) map[int]evidence.ThreadLook {
		return r.lookAgain(&procs[i], a[i].Value)
	})

	// Nothing below reads a word: who is meant by them does not change.
	o := newOwners(r, procs, a)
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
		for n, sl := range s.waiting {
			w := evidence.Wait{PID: p.PID, TID: sl.tid, A: sl.look, B: b[i].Value[sl.tid]}
			f := sl.futex
			switch {
			case !readsWord(&f):
			case !words[i].Done:
				f.Unread = words[i].Why
			case words[i].Value.failed != "":
				f.Unread = words[i].Value.failed
			default:
				read := words[i].Value.words[n]
				f.Word, f.Mutex, f.Unread = read.word, read.mutex, read.unread
				o.name(i, &f, read)
				f.Caller = callers.of(p.PID, s.via, words[i].Value.maps, read.stack)
			}
			w.Futex = &f
			look.Waits = append(look.Waits, w)
		}
		if why := words[i].Why + words[i].Value.failed; why != "" && !words[i].Value.denied && len(s.waiting) > 0 {
			t.lateFor(p.PID, "memory: "+why)
		}
	}
	run := t.run(evidence.ProbeWaits)
	run.TookMS = probes.Milliseconds(time.Since(start))
	return look, run
}

// sleepers are the threads of one process that sleep in a futex call.
type sleepers struct {
	waiting []sleeper
	// tids are all threads, living at the time of the look.
	tids   []int
	via    int
	denied bool
}

type sleeper struct {
	tid   int
	look  evidence.ThreadLook
	call  call
	futex evidence.Futex
}

// sleepersOf is look A.
func (r *Reader) sleepersOf(p *evidence.Process) sleepers {
	_, _, via, ok := r.same(p, make([]byte, statusFileSize))
	if !ok {
		return sleepers{}
	}
	tasks, err := openTasks(r.dir, p.PID)
	if err != nil {
		return sleepers{denied: isDenied(err)}
	}
	defer tasks.close()
	s := sleepers{via: via}
	s.tids, _ = tasks.list()
	// The right to read is the same for all threads: try one first.
	if _, err := tasks.readSyscall(strconv.Itoa(via), false); isDenied(err) {
		s.denied = true
		return s
	}
	s.waiting = overThreads(tasks, s.tids, func(d *taskDir, tid int) (sleeper, bool) {
		look, ok := d.look(tid)
		if !ok {
			return sleeper{}, false
		}
		c, ok := parseCall([]byte(look.Syscall))
		if !ok {
			return sleeper{}, false
		}
		f, ok := futexOf(c)
		if !ok {
			return sleeper{}, false
		}
		look.State = d.state(tid)
		return sleeper{tid: tid, look: look, call: c, futex: f}, look.State != ""
	})
	return s
}

// lookAgain is look B, by thread.
func (r *Reader) lookAgain(p *evidence.Process, s sleepers) map[int]evidence.ThreadLook {
	if len(s.waiting) == 0 {
		return nil
	}
	tasks, err := openTasks(r.dir, p.PID)
	if err != nil {
		return nil
	}
	defer tasks.close()
	tids := make([]int, len(s.waiting))
	for i, w := range s.waiting {
		tids[i] = w.tid
	}
	type seen struct {
		tid  int
		look evidence.ThreadLook
	}
	looks := map[int]evidence.ThreadLook{}
	for _, v := range overThreads(tasks, tids, func(d *taskDir, tid int) (seen, bool) {
		look, ok := d.look(tid)
		if ok {
			look.State = d.state(tid)
		}
		return seen{tid, look}, ok && look.State != ""
	}) {
		looks[v.tid] = v.look
	}
	return looks
}

// look reads schedstat and then the system call: the order that makes two
// equal looks a proof of sleep.
func (d *taskDir) look(tid int) (evidence.ThreadLook, bool) {
	var look evidence.ThreadLook
	name := strconv.Itoa(tid)
	if b, err := d.read(name, "schedstat"); err == nil {
		if s, ok := parseSchedstat(b); ok {
			look.RunNS, look.Slices = &s.Run, &s.Slices
		}
	}
	b, err := d.readSyscall(name, true)
	if err != nil {
		return look, false
	}
	look.Syscall = string(b)
	return look, true
}

// state is a thread's state letter, "" if it has ended. A stopped or frozen
// thread still shows the system call it was in.
func (d *taskDir) state(tid int) string {
	b, err := d.read(strconv.Itoa(tid), "stat")
	if err != nil {
		return ""
	}
	s, err := parseStat(b)
	if err != nil {
		return ""
	}
	return string(s.State)
}

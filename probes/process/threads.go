package process

import (
	"runtime"
	"strconv"
	"sync"

	"github.com/whyhang/whyhang/probes/evidence"
)

// threads reads every thread of a process in one pass. With h, what it says of
// those asleep in futex calls is look A of a reading of lock words, and they
// keep their files open for look B. Threads that end meanwhile are left out.
//
// The right to read system calls is that of the whole process, and via, who
// speaks for it, is asked for it: a thread that is ending belongs to root for
// its last moment, and refuses its owner.
func (r *Reader) threads(pid, via int, h *held) ([]evidence.ThreadFrame, sleepers) {
	tasks, err := openTasks(r.dir, pid)
	if err != nil {
		return nil, sleepers{via: via, denied: isDenied(err)}
	}
	defer tasks.close()
	_, err = tasks.readSyscall(strconv.Itoa(via), false)
	s := sleepers{via: via, denied: isDenied(err)}
	s.tids, _ = tasks.list()
	seen := overThreads(tasks, s.tids, func(d *taskDir, tid int) (seenThread, bool) {
		return d.thread(tid, !s.denied, h)
	})
	frames := make([]evidence.ThreadFrame, len(seen))
	for i := range seen {
		frames[i] = seen[i].frame
		if seen[i].asleep {
			s.waiting = append(s.waiting, seen[i].sleeper)
		}
		s.naps = s.naps || frames[i].Wchan == "hrtimer_nanosleep"
	}
	return frames, s
}

// seenThread is a thread, and what it waits for if it sleeps in a call that
// another thread must end.
type seenThread struct {
	frame   evidence.ThreadFrame
	sleeper sleeper
	asleep  bool
}

// threadsPerWorker is from where on a second worker pays.
const threadsPerWorker = 256

// overThreads looks at each thread, large processes with several workers; the
// results are in the order of tids.
func overThreads[T any](d *taskDir, tids []int, look func(*taskDir, int) (T, bool)) []T {
	workers := max(1, min(runtime.GOMAXPROCS(0), 4, len(tids)/threadsPerWorker))
	parts := make([][]T, workers)
	var all sync.WaitGroup
	for w := range workers {
		part := tids[w*len(tids)/workers : (w+1)*len(tids)/workers]
		work := func() {
			own := &taskDir{fd: d.fd, buf: make([]byte, statusFileSize)}
			out := make([]T, 0, len(part))
			for _, tid := range part {
				if v, ok := look(own, tid); ok {
					out = append(out, v)
				}
			}
			parts[w] = out
		}
		if w == workers-1 {
			work()
		} else {
			all.Go(work)
		}
	}
	all.Wait()
	if workers == 1 {
		return parts[0]
	}
	joined := make([]T, 0, len(tids))
	for _, p := range parts {
		joined = append(joined, p...)
	}
	return joined
}

// thread reads one thread. schedstat comes before syscall: two looks that
// agree in both then prove that the thread slept in that one call from the
// first syscall line to the second schedstat.
func (d *taskDir) thread(tid int, syscalls bool, h *held) (seenThread, bool) {
	files := d.open(strconv.Itoa(tid), syscalls)
	t, ok := d.seeThread(tid, files, h != nil)
	if !ok || !t.asleep || !h.keep(&t.sleeper, files) {
		files.close()
	}
	return t, ok
}

// seeThread reads the files of a thread, and its futex call if that is wanted.
func (d *taskDir) seeThread(tid int, files threadFiles, waits bool) (seenThread, bool) {
	t := seenThread{frame: evidence.ThreadFrame{TID: tid}}
	f := &t.frame
	if s, ok := d.schedstat(files); ok {
		f.RunNS, f.DelayNS, f.Slices = &s.Run, &s.Delay, &s.Slices
	}
	s, ok := d.stat(files)
	if !ok {
		return t, false
	}
	f.Name, f.State = s.Comm, string(s.State)
	f.UserMS, f.SystemMS = milliseconds(s.User), milliseconds(s.System)
	if files.syscall >= 0 {
		if b, err := d.syscallLine(files, s.State != 'R'); err == nil {
			f.Syscall = string(b)
		}
	}
	if s.State != 'R' { // a running thread waits nowhere
		if b, err := d.read(strconv.Itoa(tid), "wchan"); err == nil && string(b) != "0" {
			f.Wchan = string(b)
		}
	}
	if c, ok := parseCall([]byte(f.Syscall)); ok && waits {
		t.sleeper = sleeper{tid: tid, call: c, look: evidence.ThreadLook{State: f.State, Syscall: f.Syscall, RunNS: f.RunNS, Slices: f.Slices}}
		if futex, ok := futexOf(c); ok {
			t.sleeper.futex, t.asleep = &futex, true
		} else if blocked, ok := blockedOf(c); ok {
			t.sleeper.blocked, t.asleep = &blocked, true
		}
	}
	return t, true
}

package process

import (
	"runtime"
	"strconv"
	"sync"

	"github.com/whyhang/whyhang/probes/evidence"
)

// threads reads every thread of a process in one pass. denied says that the
// system calls may not be read; they are empty then. Threads that end
// meanwhile are left out.
//
// The right is that of the whole process, and via, who speaks for it, is asked
// for it: a thread that is ending belongs to root for its last moment, and
// refuses its owner.
func (r *Reader) threads(pid, via int) (frames []evidence.ThreadFrame, denied bool) {
	tasks, err := openTasks(r.dir, pid)
	if err != nil {
		return nil, isDenied(err)
	}
	defer tasks.close()
	_, err = tasks.readSyscall(strconv.Itoa(via), false)
	denied = isDenied(err)
	tids, _ := tasks.list()
	return overThreads(tasks, tids, func(d *taskDir, tid int) (evidence.ThreadFrame, bool) {
		return d.thread(tid, !denied)
	}), denied
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
func (d *taskDir) thread(tid int, syscalls bool) (evidence.ThreadFrame, bool) {
	f := evidence.ThreadFrame{TID: tid}
	name := strconv.Itoa(tid)
	if b, err := d.read(name, "schedstat"); err == nil {
		if s, ok := parseSchedstat(b); ok {
			f.RunNS, f.DelayNS, f.Slices = &s.Run, &s.Delay, &s.Slices
		}
	}
	b, err := d.read(name, "stat")
	if err != nil {
		return f, false
	}
	s, err := parseStat(b)
	if err != nil {
		return f, false
	}
	f.Name, f.State = s.Comm, string(s.State)
	f.UserMS, f.SystemMS = milliseconds(s.User), milliseconds(s.System)
	if syscalls {
		if b, err := d.readSyscall(name, s.State != 'R'); err == nil {
			f.Syscall = string(b)
		}
	}
	if s.State != 'R' { // a running thread waits nowhere
		if b, err := d.read(name, "wchan"); err == nil && string(b) != "0" {
			f.Wchan = string(b)
		}
	}
	return f, true
}

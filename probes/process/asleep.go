package process

import (
	"bytes"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxAsleep bounds how many threads are asked since when they sleep: a file of
// the scheduler for each, some 30 microseconds.
const maxAsleep = 128

// sinceWhen says of threads that wait for somebody by name how long they have
// slept: the scheduler keeps when a thread last ran (se.exec_start of
// /proc/PID/task/TID/sched, kernel/sched/debug.c). It counts on a clock of the
// processor that the thread ran on, which leaves out interrupts and stolen time
// and may differ from its neighbour's by seconds; so the present is read on that
// same processor. Kernels without CONFIG_SCHED_DEBUG (before 6.15) have no such
// file; then it is not known.
func (r *Reader) sinceWhen(waits []evidence.Wait) {
	if !r.real {
		return // another machine's clock
	}
	buf := make([]byte, statusFileSize)
	asked := 0
	clocks := map[int]cpuClock{}
	for i := range waits {
		w := &waits[i]
		named := w.Blocked != nil || w.Futex != nil && (w.Futex.Owner != nil || w.Futex.Python != nil && !w.Futex.Timed)
		if !named || w.B.State != "S" {
			continue
		}
		if asked++; asked > maxAsleep {
			return
		}
		dir := r.path(w.PID, "task/"+strconv.Itoa(w.TID))
		last, ok := lastRan(dir+"/sched", buf)
		st, err := readStat(dir, buf)
		if !ok || err != nil {
			continue
		}
		clock, seen := clocks[st.CPU]
		if !seen && len(clocks) < maxClocks {
			clock = clockOf(st.CPU)
			clocks[st.CPU] = clock
		}
		if !clock.known {
			continue
		}
		ms := max(0, clock.now+float64(time.Since(clock.at).Microseconds())/1000-last)
		w.AsleepMS = &ms
	}
}

// maxClocks bounds on how many processors the time is read.
const maxClocks = 16

// cpuClock is what the scheduler's clock of a processor showed at a time.
type cpuClock struct {
	now   float64 // ms
	at    time.Time
	known bool
}

// clockOf runs on a processor for a moment, in a thread that is then given up,
// and reads when that thread last ran: now.
func clockOf(cpu int) cpuClock {
	read := make(chan cpuClock, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var c cpuClock
		defer func() { read <- c }()
		var set unix.CPUSet
		set.Set(cpu)
		if unix.SchedSetaffinity(0, &set) != nil {
			return // not one of ours: a cpuset, or taken offline
		}
		c.now, c.known = lastRan("/proc/thread-self/sched", make([]byte, statusFileSize))
		c.at = time.Now()
	}()
	return <-read
}

// lastRan is se.exec_start in milliseconds.
func lastRan(path string, buf []byte) (float64, bool) {
	b, err := readAt(unix.AT_FDCWD, path, buf)
	if err != nil {
		return 0, false
	}
	return parseExecStart(b)
}

// parseExecStart finds the line "se.exec_start   :   12888604.634429".
func parseExecStart(b []byte) (float64, bool) {
	_, rest, ok := bytes.Cut(b, []byte("se.exec_start"))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	value := bytes.Trim(line, " \t:")
	v, err := strconv.ParseFloat(string(value), 64)
	return v, err == nil && v > 0
}

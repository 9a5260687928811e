package process

import (
	"math"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// threadFiles are the files of one thread that both looks of a reading of lock
// words read. Opening one costs as much as reading it twice.
type threadFiles struct {
	schedstat, stat, syscall int // descriptors, -1 if not open
}

// open opens the files of a thread; those that cannot be opened are -1.
func (d *taskDir) open(tid string, syscalls bool) threadFiles {
	f := threadFiles{d.openOne(tid, "schedstat"), d.openOne(tid, "stat"), -1}
	if syscalls {
		f.syscall = d.openOne(tid, "syscall")
	}
	return f
}

func (d *taskDir) openOne(tid, file string) int {
	fd, err := openAt(d.fd, tid+"/"+file, unix.O_RDONLY)
	if err != nil {
		return -1
	}
	return fd
}

func (f threadFiles) close() {
	for _, fd := range []int{f.schedstat, f.stat, f.syscall} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// schedstat, stat and syscallLine read the files from their beginning: the
// kernel writes them anew each time.
func (d *taskDir) schedstat(f threadFiles) (schedstat, bool) {
	n, err := readFD(f.schedstat, d.buf)
	if err != nil {
		return schedstat{}, false
	}
	return parseSchedstat(d.buf[:n])
}

func (d *taskDir) stat(f threadFiles) (stat, bool) {
	n, err := readFD(f.stat, d.buf)
	if err != nil {
		return stat{}, false
	}
	s, err := parseStat(d.buf[:n])
	return s, err == nil
}

// syscallLine is without its newline. asleep says that the thread's state was
// not R: then "running" may only mean that it woke up for a moment, and is
// asked again.
func (d *taskDir) syscallLine(f threadFiles, asleep bool) ([]byte, error) {
	for try := 1; ; try++ {
		n, err := readFD(f.syscall, d.buf)
		if err != nil {
			return nil, err
		}
		if line := d.buf[:n]; !asleep || try == syscallRetries || !isRunning(line) {
			return trimNewline(line), nil
		}
	}
}

// held lets sleepers keep their files open from look A to look B, as long as
// the process may have so many. A nil held keeps nothing.
type held struct {
	left atomic.Int64
}

// filesPerThread is how many descriptors a sleeper keeps.
const filesPerThread = 3

// newHeld keeps at most half of the descriptors that whyhang may open: the log,
// the sockets and the children need some as well.
func newHeld() *held {
	h := &held{}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		h.left.Store(int64(min(limit.Cur, math.MaxInt32) / 2))
	}
	return h
}

// keep takes the files over, or says that there is no room for them.
func (h *held) keep(s *sleeper, f threadFiles) bool {
	if h == nil {
		return false
	}
	if h.left.Add(-filesPerThread) < 0 {
		h.left.Add(filesPerThread)
		return false
	}
	s.files, s.kept = f, true
	return true
}

// release closes the files of all sleepers.
func (s *sleepers) release() {
	for i := range s.waiting {
		if s.waiting[i].kept {
			s.waiting[i].files.close()
			s.waiting[i].kept = false
		}
	}
}

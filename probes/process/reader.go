package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Reader reads one /proc directory.
type Reader struct {
	dir string
	fs  procfs.FS
	// real: dir is the /proc of whyhang's own PID namespace, so that a PID in
	// it may be asked about with kill(pid, 0).
	real bool
	// boot is when the machine started; process start times count from it.
	boot     time.Time
	pageSize uint64
	files    *Files

	mu sync.Mutex
	// small are files that are called like weights and are too small to be any.
	small map[string]bool
	// inside are the looks that wait for a process's memory lock now.
	inside map[string]bool
}

// clockTick is USER_HZ, the number of clock ticks a second in /proc. The
// kernel ABI fixes it at 100 on every architecture Go has.
const clockTick = 100

// NewReader reads the proc file system at procDir: "/proc", or another place
// where one is mounted (/host/proc in a container), or a directory that looks
// like one. The error says that procDir is none of these. Close ends the child
// that the Reader may have started.
func NewReader(procDir string) (*Reader, error) {
	if procDir == "" {
		procDir = "/proc"
	}
	fs, err := procfs.NewFS(procDir)
	if err != nil {
		return nil, fmt.Errorf("no proc file system at %s: %w", procDir, err)
	}
	r := &Reader{dir: procDir, fs: fs, real: procDir == "/proc", pageSize: uint64(os.Getpagesize()), small: map[string]bool{}, inside: map[string]bool{}}
	r.files = newFiles(r)
	b, err := os.ReadFile(procDir + "/stat")
	if err != nil {
		return nil, fmt.Errorf("no proc file system at %s: %w", procDir, err)
	}
	r.boot = bootTime(b)
	return r, nil
}

// Close ends the child that looks at the target's files.
func (r *Reader) Close() { r.files.Close() }

// Files is what looks at the target's file systems for this Reader.
func (r *Reader) Files() *Files { return r.files }

// Dir is the directory that is read.
func (r *Reader) Dir() string { return r.dir }

// bootTime finds the btime line of /proc/stat: seconds since the epoch.
func bootTime(procStat []byte) time.Time {
	for line := range bytes.Lines(procStat) {
		if value, ok := bytes.CutPrefix(line, []byte("btime ")); ok {
			if s, ok := number(bytes.TrimSpace(value)); ok && s < 1<<40 {
				return time.Unix(int64(s), 0)
			}
		}
	}
	return time.Time{}
}

// started is the wall-clock time of a start in clock ticks since boot; exact
// to a second, as btime is. Zero when the boot time is not known.
func (r *Reader) started(ticks uint64) time.Time {
	if r.boot.IsZero() {
		return time.Time{}
	}
	return r.boot.Add(time.Duration(ticks%(1<<50)) * (time.Second / clockTick))
}

func milliseconds(ticks uint64) uint64 { return ticks * (1000 / clockTick) }

// path is a file of a process.
func (r *Reader) path(pid int, file string) string {
	return r.dir + "/" + strconv.Itoa(pid) + "/" + file
}

// base is the directory whose files speak for the process as a whole: its own,
// or that of a living thread when the first thread has ended. Such a leader is
// a zombie without memory, descriptors and namespaces, while the process
// lives.
func (r *Reader) base(pid, via int) string {
	if via == 0 || via == pid {
		return r.dir + "/" + strconv.Itoa(pid)
	}
	return r.dir + "/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(via)
}

// proc is the library's view of base.
func (r *Reader) proc(pid, via int) (procfs.Proc, error) {
	if via == 0 || via == pid {
		return r.fs.Proc(pid)
	}
	return r.fs.Thread(pid, via)
}

// readStat reads the stat of a process or, through task/, of a thread.
func readStat(dir string, buf []byte) (stat, error) {
	b, err := readAt(unix.AT_FDCWD, dir+"/stat", buf)
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

func readStatus(dir string, buf []byte) (status, error) {
	b, err := readAt(unix.AT_FDCWD, dir+"/status", buf)
	if err != nil {
		return status{}, err
	}
	return parseStatus(b), nil
}

// alive finds who speaks for a process whose leader is a zombie: the first
// thread that still lives. False for a process that has really ended.
func (r *Reader) alive(pid int, leader stat) (via int, s stat, ok bool) {
	if leader.State != 'Z' && leader.State != 'X' {
		return pid, leader, true
	}
	if leader.Threads < 2 {
		return 0, leader, false
	}
	tasks, err := openTasks(r.dir, pid)
	if err != nil {
		return 0, leader, false
	}
	defer tasks.close()
	tids, _ := tasks.list()
	for _, tid := range tids {
		if tid == pid {
			continue
		}
		b, err := tasks.read(strconv.Itoa(tid), "stat")
		if err != nil {
			continue
		}
		if s, err := parseStat(b); err == nil && s.State != 'Z' && s.State != 'X' {
			return tid, s, true
		}
	}
	return 0, leader, false
}

func (r *Reader) isSmall(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.small[path]
}

func (r *Reader) setSmall(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.small[path] = true
}

// enter says whether nobody is inside a look of that name at that process; then
// the caller is, until leave. A look that was left behind because it waits for
// a lock would otherwise be joined by one more stuck thread with every frame.
func (r *Reader) enter(what string, pid int) (leave func(), ok bool) {
	key := what + " " + strconv.Itoa(pid)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside[key] {
		return nil, false
	}
	r.inside[key] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.inside, key)
	}, true
}

// stillInside is why a look was not begun.
const stillInside = "an earlier look still waits for it"

// residentBytes is all that a process has mapped in; 0 if not known.
func (r *Reader) residentBytes(pid, via int) uint64 {
	st, err := readStatus(r.base(pid, via), make([]byte, statusFileSize))
	if err != nil {
		return 0
	}
	return sum(st.RSSAnon, st.RSSFile, st.RSSShmem)
}

// sum adds up what is known.
func sum(parts ...*uint64) uint64 {
	var total uint64
	for _, n := range parts {
		if n != nil {
			total += *n
		}
	}
	return total
}

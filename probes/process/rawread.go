package process

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// statusFileSize is enough for one read of every small /proc file: the kernel
// makes the whole text at once, up to the size of the buffer.
const statusFileSize = 8 << 10

// readAt reads a small file, relative to a directory that is held open (or
// unix.AT_FDCWD), into buf. One openat, one read, one close: five thousand
// threads have twenty thousand such files, and os.ReadFile takes twice as long.
func readAt(dir int, name string, buf []byte) ([]byte, error) {
	fd, err := openAt(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := readFD(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

func openAt(dir int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// readFD reads from the beginning; on a /proc file that makes the kernel write
// the text anew.
func readFD(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Pread(fd, buf, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// taskDir is /proc/PID/task held open, with one buffer for all that is read
// below it: what a method returns holds until the next call.
type taskDir struct {
	fd  int
	buf []byte
}

func openTasks(procDir string, pid int) (*taskDir, error) {
	fd, err := openAt(unix.AT_FDCWD, procDir+"/"+strconv.Itoa(pid)+"/task", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &taskDir{fd: fd, buf: make([]byte, statusFileSize)}, nil
}

func (d *taskDir) close() { unix.Close(d.fd) }

// list returns the thread IDs in ascending order. Threads that come or go
// meanwhile may be missing or already be gone. It works once for each taskDir.
func (d *taskDir) list() ([]int, error) {
	var tids []int
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(d.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return tids, err
		}
		if n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if tid, err := strconv.Atoi(name); err == nil && tid > 0 {
				tids = append(tids, tid)
			}
		}
	}
	slices.Sort(tids)
	return tids, nil
}

func (d *taskDir) read(tid, file string) ([]byte, error) {
	return readAt(d.fd, tid+"/"+file, d.buf)
}

// syscallRetries: a thread that the kernel finds awake twice in a row although
// its state said asleep is worth another look, a third says it really runs.
const syscallRetries = 3

// readSyscall reads the syscall line of a thread once.
func (d *taskDir) readSyscall(tid string, asleep bool) ([]byte, error) {
	fd, err := openAt(d.fd, tid+"/syscall", unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return d.syscallLine(threadFiles{syscall: fd}, asleep)
}

func trimNewline(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		return b[:n-1]
	}
	return b
}

// isDenied tells missing rights from a thread or file that is not there.
// Foreign processes answer EACCES, Yama and security modules EPERM.
func isDenied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// isGone tells a process or thread that does not exist any more.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

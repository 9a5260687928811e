package kernel

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Reader reads the limits of one tree.
type Reader struct {
	proc string
	fs   procfs.FS
	// root stands before every path outside /proc: "" but for fixtures.
	root string

	mu     sync.Mutex
	mounts []cgroupMount
	noted  map[string]bool // by what could not be read
	groups []evidence.Cgroup
	byDir  map[string]int
	unread []evidence.Unread
	busy   bool
	asker  probes.Asker
}

// Options say where to read.
type Options struct {
	// Proc is the proc file system, "" for /proc.
	Proc string
	// Root is a directory that stands for / in front of the mount points of
	// control groups; "" for / itself. Fixtures have one.
	Root string
}

// NewReader reads where the control groups are mounted.
func NewReader(o Options) (*Reader, error) {
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	fs, err := procfs.NewFS(o.Proc)
	if err != nil {
		return nil, fmt.Errorf("no proc file system at %s: %w", o.Proc, err)
	}
	r := &Reader{proc: o.Proc, fs: fs, root: o.Root, noted: map[string]bool{}, byDir: map[string]int{},
		asker: probes.Asker{Name: ChildName, MaxLeft: maxLeft}}
	if r.mounts, err = cgroupMounts(fs); err != nil {
		r.note(o.Proc+"/self/mountinfo", err)
	}
	return r, nil
}

// Close ends the child that the Reader may have started.
func (r *Reader) Close() { r.asker.Close() }

// maxLeft bounds how many children may be left behind in one run.
const maxLeft = 3

// ask puts a question to the child. Errors of the kernel are syscall.Errno.
func (r *Reader) ask(ctx context.Context, limit time.Duration, q question) (answer, error) {
	var a answer
	err := r.asker.Ask(ctx, limit, q, &a)
	if err == nil && a.Errno != 0 {
		err = syscall.Errno(a.Errno)
	}
	return a, err
}

// path is a file of a process.
func (r *Reader) path(pid int, file string) string {
	return r.proc + "/" + strconv.Itoa(pid) + "/" + file
}

// smallFile bounds the files of /proc and of control groups that are read.
const smallFile = 64 << 10

// readSmall reads the beginning of a file of the kernel's own file systems,
// which answer from memory.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, smallFile))
}

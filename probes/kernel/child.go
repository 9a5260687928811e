package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// ChildName is the name of the child that does what may hang; main and
// TestMain hand Child to probes.ChildMain under it.
const ChildName = "kernel"

// What the child can be asked.
const (
	opRoom = "room"
	opLog  = "log"
)

type question struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Root is the directory that Path begins at: links that lead to the top
	// stay below it. Empty: our own root.
	Root string `json:"root,omitempty"`
	// SinceNS is a time after boot, for the log.
	SinceNS int64 `json:"since_ns,omitempty"`
}

// answer answers it. Errno is an error of the kernel: sent as a number, so that
// the parent knows which it was.
type answer struct {
	Errno int                 `json:"errno,omitempty"`
	Room  *room               `json:"room,omitempty"`
	Log   *evidence.KernelLog `json:"log,omitempty"`
}

// room is what statfs(2) says, and whose file system it is.
type room struct {
	Device             uint64
	Size, Free, Avail  uint64
	Inodes, FreeInodes uint64
	ReadOnly           bool
}

// Child is the child's side. Everything here may hang for ever: it names what
// it is about to touch first.
func Child() probes.Handler {
	return func(_ context.Context, raw json.RawMessage, stage func(string)) (any, error) {
		var q question
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		stage(q.Root + q.Path)
		var a answer
		var err error
		switch q.Op {
		case opRoom:
			a.Room, err = roomAt(q.Root, q.Path)
		case opLog:
			a.Log, err = readKernelLog(q.Path, time.Duration(q.SinceNS))
		default:
			err = fmt.Errorf("no question %q", q.Op)
		}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return answer{Errno: int(errno)}, nil
		}
		return a, err
	}
}

// roomAt asks without opening: a file that is only named (O_PATH) can be asked
// for its file system, whatever it is.
func roomAt(root, path string) (*room, error) {
	fd, err := openBelow(root, path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, err
	}
	block := uint64(max(fs.Frsize, 0))
	if block == 0 {
		block = uint64(max(fs.Bsize, 0))
	}
	return &room{
		Device: uint64(st.Dev), Size: fs.Blocks * block, Free: fs.Bfree * block, Avail: fs.Bavail * block,
		Inodes: fs.Files, FreeInodes: fs.Ffree, ReadOnly: fs.Flags&unix.ST_RDONLY != 0,
	}, nil
}

func openBelow(root, path string) (int, error) {
	const flags = unix.O_PATH | unix.O_CLOEXEC
	if root == "" {
		return unix.Open(path, flags, 0)
	}
	dir, err := unix.Open(root, flags|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT})
	if err == unix.ENOSYS || err == unix.EPERM { // before Linux 5.6, or kept away by seccomp
		return unix.Open(root+path, flags, 0)
	}
	return fd, err
}

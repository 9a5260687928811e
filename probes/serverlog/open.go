package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// refusal is a file that is not read as a log, and why.
type refusal struct {
	Status evidence.Status `json:"status"`
	Why    string          `json:"why"`
}

func (r *refusal) Error() string { return r.Why }

// refused makes an error of the file system a refusal.
func refused(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	status, why := probes.Classify(err)
	return &refusal{Status: status, Why: why}
}

// identity tells one file from another.
type identity struct{ dev, ino uint64 }

// openLog opens a regular file for reading. O_NONBLOCK keeps open(2) of a FIFO
// from waiting for a writer, O_NOCTTY a terminal from becoming ours. Anything
// but a regular file is a *refusal: reading a pipe would take its data away
// from who should get it.
func openLog(path string) (*os.File, identity, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, identity{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, identity{}, &fs.PathError{Op: "fstat", Path: path, Err: err}
	}
	if kind := kindOf(st.Mode); kind != "" {
		unix.Close(fd)
		return nil, identity{}, &refusal{Status: evidence.Unsupported, Why: "is " + kind + ", not a file"}
	}
	return os.NewFile(uintptr(fd), path), identityOf(&st), nil
}

// kindOf names what a file is in words, "" for a regular file.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return ""
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		return "a device"
	}
	return fmt.Sprintf("of unknown type %#o", mode&unix.S_IFMT)
}

func identityOf(st *unix.Stat_t) identity {
	return identity{dev: uint64(st.Dev), ino: st.Ino}
}

// seekData finds the next offset of f that is no hole (lseek(2), SEEK_DATA);
// behind the last byte that is the end of the file.
func seekData(f *os.File) func(int64) (int64, error) {
	return func(from int64) (int64, error) {
		next, err := unix.Seek(int(f.Fd()), from, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return unix.Seek(int(f.Fd()), 0, unix.SEEK_END)
		}
		return next, err
	}
}

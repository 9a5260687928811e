package caches

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// ChildName is the name of the child that looks at directories.
const ChildName = "caches"

// question is one look at some directories.
type question struct {
	Asked []asked `json:"asked"`
}

// asked is one directory: below one of these roots, the first that opens.
type asked struct {
	ID      int      `json:"id"`
	Roots   []string `json:"roots"`
	Path    string   `json:"path"`
	Library string   `json:"library"`
}

// answer is what was found, by ID.
type answer struct {
	Found []found `json:"found"`
}

type found struct {
	ID      int    `json:"id"`
	Errno   int    `json:"errno,omitempty"`
	FSType  string `json:"fs_type,omitempty"`
	Remote  bool   `json:"remote,omitempty"`
	Files   int    `json:"files"`
	Bytes   uint64 `json:"bytes"`
	Newest  int64  `json:"newest"`
	Cut     bool   `json:"cut,omitempty"`
	Locks   []seen `json:"locks,omitempty"`
	Partial []seen `json:"partial,omitempty"`
	// More counts the lock files that are not in Locks.
	More int   `json:"more,omitempty"`
	At   int64 `json:"at"`
}

// Child is the child's side. It keeps a walker for each directory.
func Child() probes.Handler {
	walkers := map[int]*walker{}
	return func(_ context.Context, raw json.RawMessage, stage func(string)) (any, error) {
		var q question
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		var a answer
		for _, one := range q.Asked {
			if walkers[one.ID] == nil {
				walkers[one.ID] = &walker{lib: libraryNamed(one.Library), top: one.Path}
			}
			f, err := lookAt(one, walkers[one.ID], stage)
			var errno syscall.Errno
			if err != nil && !errors.As(err, &errno) {
				errno = unix.EIO
			}
			f.ID, f.Errno = one.ID, int(errno)
			a.Found = append(a.Found, f)
		}
		return a, nil
	}
}

// lookAt takes one look at one directory.
func lookAt(one asked, w *walker, stage func(string)) (found, error) {
	// One stage for the whole directory: a line to the parent for each of a
	// thousand would cost more than the look.
	stage(one.Path)
	quiet := func(string) {}
	fd, err := openBelow(one.Roots, one.Path)
	if err != nil {
		return found{}, err
	}
	defer unix.Close(fd)
	f := found{}
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) == nil {
		f.FSType, f.Remote = sharedFileSystem(int64(fs.Type))
	}
	if err := w.look(fd, quiet); err != nil {
		return f, err
	}
	w.sum(&f)
	return f, nil
}

// openBelow opens a directory as the process sees it: links in its path that
// lead to the top lead to the process's own root.
func openBelow(roots []string, p string) (int, error) {
	err := error(unix.ENOENT)
	for _, root := range roots {
		var top, fd int
		if top, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
		fd, err = unix.Openat2(top, p, &how)
		if errors.Is(err, unix.ENOSYS) {
			fd, err = unix.Openat(top, "./"+strings.TrimLeft(p, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		unix.Close(top)
		if err == nil {
			return fd, nil
		}
	}
	return -1, err
}

// sum adds up all directories.
func (w *walker) sum(f *found) {
	f.At = w.at.UnixNano()
	f.Cut = w.full || len(w.pending) > 0
	for _, d := range w.dirs {
		f.Files += d.files
		f.Bytes += d.bytes
		f.Newest = max(f.Newest, d.newest)
		f.Locks = append(f.Locks, d.locks...)
		f.Partial = append(f.Partial, d.partial...)
	}
	newest := func(a, b seen) int { return cmp.Or(cmp.Compare(b.Modified, a.Modified), cmp.Compare(a.Path, b.Path)) }
	slices.SortFunc(f.Locks, newest)
	slices.SortFunc(f.Partial, newest)
	// A lock whose existence counts is never left out for one that is newer.
	counts := func(s seen) int {
		if w.lib.lockKind(s.Path) == evidence.LockPresence {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(f.Locks, func(a, b seen) int { return cmp.Compare(counts(a), counts(b)) })
	if len(f.Locks) > maxListed {
		f.More = len(f.Locks) - maxListed
		f.Locks = f.Locks[:maxListed]
	}
	f.Partial = f.Partial[:min(len(f.Partial), maxListed)]
}

// sharedFileSystem names the types of file systems that other machines may
// share (the f_type of statfs(2), include/uapi/linux/magic.h and the file
// systems' own headers).
func sharedFileSystem(magic int64) (string, bool) {
	switch uint32(magic) {
	case 0x6969:
		return "nfs", true
	case 0xFF534D42, 0xFE534D42:
		return "cifs", true
	case 0x00C36400:
		return "ceph", true
	case 0x0BD00BD0:
		return "lustre", true
	case 0x47504653:
		return "gpfs", true
	case 0x19830326:
		return "beegfs", true
	case 0x01021997:
		return "9p", true
	case 0x65735546:
		return "fuse", true
	}
	return "", false
}

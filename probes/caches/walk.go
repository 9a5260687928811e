package caches

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// This file runs in the child.

// Bounds on one cache. A cache that is larger is cut.
const (
	maxEntries = 20000
	maxDepth   = 8
	maxListed  = 256 // lock files and partial files in an answer
	walkLimit  = 500 * time.Millisecond
)

// warm is for how long after its last change the files of a directory are
// looked at one by one: a file that is written into changes no directory.
const warm = time.Minute

// walker keeps what it knows of one cache between the looks, so that a look
// reads only the directories that have changed.
type walker struct {
	lib  *library
	top  string // the directory, as the process sees it
	dirs map[string]*directory
	// pending are directories that were found and not read yet.
	pending []string
	entries int
	full    bool
	at      time.Time
}

// directory is what one directory holds by itself.
type directory struct {
	depth    int
	modified int64 // ns
	files    int
	entries  int
	bytes    uint64
	newest   int64
	hot      bool
	locks    []seen
	partial  []seen
	below    []string
}

// seen is a file that is listed by name.
type seen struct {
	Path       string `json:"path"`
	Modified   int64  `json:"modified"`
	Bytes      uint64 `json:"bytes"`
	Allocated  uint64 `json:"allocated"`
	Inode      uint64 `json:"inode"`
	UID        int    `json:"uid"`
	Executable bool   `json:"executable,omitempty"`
}

// look brings the walker up to date with the directory behind fd, within its
// limits.
func (w *walker) look(fd int, stage func(string)) error {
	w.at = time.Now()
	if w.dirs == nil {
		w.dirs = map[string]*directory{}
		w.pending = []string{"."}
	}
	for name, d := range w.dirs {
		if time.Since(w.at) > walkLimit {
			return nil
		}
		if w.dirs[name] != d {
			continue // forgotten meanwhile, with the directory above it
		}
		var st unix.Stat_t
		stage(path.Join(w.top, name))
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			w.forget(name)
			continue
		}
		young := w.at.UnixNano()-st.Mtim.Nano() < int64(2*time.Second)
		if d.hot || young || st.Mtim.Nano() != d.modified {
			if err := w.read(fd, name, d.depth, stage); err != nil {
				w.forget(name)
			}
		}
	}
	for len(w.pending) > 0 && !w.full && time.Since(w.at) <= walkLimit {
		name := w.pending[0]
		w.pending = w.pending[1:]
		if err := w.read(fd, name, depthOf(name), stage); err != nil && name == "." {
			w.dirs = nil
			return err
		}
	}
	return nil
}

func depthOf(name string) int {
	if name == "." {
		return 0
	}
	n := 1
	for _, r := range name {
		if r == '/' {
			n++
		}
	}
	return n
}

// forget drops a directory and all below it.
func (w *walker) forget(name string) {
	d := w.dirs[name]
	if d == nil {
		w.pending = slices.DeleteFunc(w.pending, func(p string) bool { return p == name })
		return
	}
	w.entries -= d.entries
	delete(w.dirs, name)
	for _, b := range d.below {
		w.forget(b)
	}
}

// read reads one directory. Links are not followed.
func (w *walker) read(top int, name string, depth int, stage func(string)) error {
	stage(path.Join(w.top, name))
	fd, err := openDirectory(top, name)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	d := &directory{depth: depth, modified: st.Mtim.Nano()}
	old := w.dirs[name]
	var known []string
	if old != nil {
		w.entries -= old.entries
		known = old.below
	}
	buf := make([]byte, 32<<10)
	var names []string
	for !w.full {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
		for _, file := range names {
			if w.entries+d.entries >= maxEntries {
				w.full = true
				break
			}
			d.entries++
			w.entry(fd, d, name, file)
		}
	}
	w.entries += d.entries
	d.hot = len(d.partial) > 0 || w.at.UnixNano()-d.newest < int64(warm) || w.lib.baton && len(d.locks) > 0
	w.dirs[name] = d
	for _, b := range d.below {
		if w.dirs[b] == nil && !slices.Contains(w.pending, b) {
			w.pending = append(w.pending, b)
		}
	}
	for _, b := range known {
		if !slices.Contains(d.below, b) {
			w.forget(b)
		}
	}
	return nil
}

// entry takes one entry of the directory dir into account. Most files are only
// summed up: a path is put together for those that are listed.
func (w *walker) entry(fd int, d *directory, dir, name string) {
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if d.depth < maxDepth {
			d.below = append(d.below, path.Join(dir, name))
		}
	case unix.S_IFREG:
		size := uint64(max(st.Size, 0))
		lock, partial := w.lib.lockKind(name) != "", w.lib.isPartial(dir, name)
		// Lock files come and go, and logs grow, without an end coming nearer.
		if !lock && !strings.HasSuffix(name, ".log") {
			d.files++
			d.bytes += size
			d.newest = max(d.newest, st.Mtim.Nano())
		}
		if !lock && !partial {
			return
		}
		s := seen{Path: path.Join(w.top, dir, name), Modified: st.Mtim.Nano(), Bytes: size, Allocated: uint64(max(st.Blocks, 0)) * 512,
			Inode: st.Ino, UID: int(st.Uid), Executable: st.Mode&0o111 != 0}
		if partial {
			d.partial = append(d.partial, s)
		} else {
			d.locks = append(d.locks, s)
		}
	}
}

// openDirectory opens a directory below top without going through links, and
// without a trace in its access time where that is allowed.
func openDirectory(top int, name string) (int, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	open := func(flags int) (int, error) {
		fd, err := unix.Openat2(top, name, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
		if errors.Is(err, unix.ENOSYS) {
			return unix.Openat(top, name, flags, 0)
		}
		return fd, err
	}
	fd, err := open(flags | unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		return open(flags)
	}
	return fd, err
}

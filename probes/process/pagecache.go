package process

import (
	"context"
	"errors"
	"path"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Counting pages is bounded in time: a model of 600 GB in small pages has 150
// million of them. cachestat(2) cannot be cut short, so it is asked piece by
// piece.
const (
	pageCacheBudget = 300 * time.Millisecond
	pageCacheLimit  = 2 * time.Second
	pageCachePiece  = 1 << 30
)

// PageCache asks how much of the model files in w, as process pid sees them, the
// kernel keeps in memory (cachestat(2), Linux 6.5; since 6.15 for files that one
// may write or owns). No page is read by it, and none is marked as used.
//
// An error is the reason why it is not known. It is not asked on FUSE, for the
// reason that Headers gives, nor on overlayfs, whose own files have no pages: the
// layer below has them.
func (f *Files) PageCache(ctx context.Context, pid int, w *evidence.Weights) (*evidence.PageCacheFrame, *evidence.Unread) {
	u := &evidence.Unread{What: "page cache of " + path.Base(w.Path), Status: evidence.Skipped}
	switch {
	case len(w.Files) == 0:
		return nil, nil
	case w.FSType == "" || isFUSE(w.FSType):
		u.Why = "to open a file on FUSE may drop the pages that the server has read of it"
		return nil, u
	case w.FSType == "overlay":
		u.Status, u.Why = evidence.Unsupported, "overlayfs keeps the pages with the layer below"
		return nil, u
	}
	q := fileQuestion{Op: opPageCache, Root: f.r.path(pid, "root")}
	for i := range min(len(w.Files), maxHeaders) {
		q.Places = append(q.Places, w.Files[i].Path)
	}
	at := time.Now()
	a, err := f.askBelow(ctx, pid, pageCacheLimit, path.Dir(q.Places[0]), q)
	if err != nil {
		u.Status, u.Why = probes.Classify(err)
		switch {
		case errors.Is(err, unix.ENOSYS):
			u.Status, u.Why = evidence.Unsupported, "cachestat(2) begins with Linux 6.5"
		case errors.Is(err, unix.EPERM):
			u.Status, u.Why, u.Hint = evidence.Denied, "cachestat(2) asks for the right to write the files", "sudo whyhang "+strconv.Itoa(pid)
		}
		return nil, u
	}
	return &evidence.PageCacheFrame{At: at, CachedBytes: a.Size, Files: len(q.Places)}, nil
}

// errTooMuch says that the pages could not be counted in time.
var errTooMuch = errors.New("too many pages to count in a moment")

// countPages runs in the child: it counts the pages of the files at these paths
// below root.
func countPages(root string, paths []string, stage func(string)) (fileAnswer, error) {
	stage(root)
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fileAnswer{}, err
	}
	defer unix.Close(fd)
	t := tree{root: fd, stage: stage}
	var a fileAnswer
	deadline := time.Now().Add(pageCacheBudget)
	for _, p := range paths {
		pages, err := t.pages(p, deadline)
		if err != nil {
			return fileAnswer{}, err
		}
		a.Size += pages * uint64(unix.Getpagesize())
	}
	return a, nil
}

// pages counts the pages of one file.
func (t tree) pages(p string, deadline time.Time) (uint64, error) {
	fd, err := t.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) { // O_NOATIME is for the owner
		fd, err = t.open(p, unix.O_RDONLY|unix.O_NONBLOCK)
	}
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, unix.EINVAL
	}
	var pages uint64
	for at := uint64(0); at < uint64(st.Size); at += pageCachePiece {
		if time.Now().After(deadline) {
			return 0, errTooMuch
		}
		var stat unix.Cachestat_t
		if err := unix.Cachestat(uint(fd), &unix.CachestatRange{Off: at, Len: pageCachePiece}, &stat, 0); err != nil {
			return 0, err
		}
		pages += stat.Cache
	}
	return pages, nil
}

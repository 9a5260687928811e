package process

import (
	"fmt"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// WantedFile names a file by what fdinfo and the links of descriptors say.
type WantedFile struct {
	Path  string
	Inode uint64
	// UID is the file's owner.
	UID int
}

// FileHolders are the processes that have each of these files open, among all
// processes of the machine. unseen says why there may be others. Descriptors'
// links are read and never followed: no file system is asked.
func (r *Reader) FileHolders(files []WantedFile, limit time.Duration) (holders [][]evidence.FileHolder, unseen string) {
	holders = make([][]evidence.FileHolder, len(files))
	s := newDescriptorScan(r, time.Now().Add(limit))
	for _, f := range files {
		s.names[path.Base(f.Path)] = true
	}
	s.run()
	inodes := true
	for i, f := range files {
		for _, h := range s.byName[path.Base(f.Path)] {
			if h.info.Inode == 0 {
				// Linux before 5.14: only the path tells, and it is that of the
				// holder's own view.
				inodes = false
				if h.link != f.Path {
					continue
				}
			} else if h.info.Inode != f.Inode {
				continue
			}
			locks := slices.ContainsFunc(h.info.Locks, func(l fileLock) bool { return !l.Waits && l.Inode == f.Inode })
			holders[i] = append(holders[i], evidence.FileHolder{PID: h.pid, Name: r.comm(h.pid), FD: h.fd, Locks: locks})
		}
	}
	switch {
	case s.late:
		unseen = "there was no time to look at all processes"
	case s.outside:
		unseen = "there may be processes outside this container"
	case s.denied > 0:
		// Whoever made a file is its owner: other users' processes need not be
		// seen.
		uids := map[int]bool{}
		for _, f := range files {
			uids[f.UID] = true
		}
		if n := r.hidden(uids); n > 0 {
			unseen = fmt.Sprintf("the files of %d processes of the lock's owner could not be seen", n)
		}
	case !inodes:
		unseen = "this kernel does not tell which file a descriptor is of"
	}
	return holders, unseen
}

// LockedInodes are the inodes of all files on which somebody holds a lock of the
// kernel. It is cheap beside FileHolders.
func (r *Reader) LockedInodes() (map[uint64]bool, error) {
	locks, err := r.fileLocksHeld()
	held := map[uint64]bool{}
	for _, l := range locks {
		held[l.Inode] = true
	}
	return held, err
}

// hidden counts the processes of these users whose descriptors may not be read.
func (r *Reader) hidden(uids map[int]bool) int {
	n := 0
	buf := make([]byte, statusFileSize)
	for _, pid := range r.pids() {
		fd, err := openAt(unix.AT_FDCWD, r.base(pid, 0)+"/fd", unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil {
			unix.Close(fd)
			continue
		}
		if !isDenied(err) {
			continue
		}
		b, err := readAt(unix.AT_FDCWD, r.path(pid, "status"), buf)
		if err == nil && uids[parseStatus(b).UID] {
			n++
		}
	}
	return n
}

// WorkMS is the processor time in milliseconds that each process and its
// living descendants have used, with that of children they have waited for.
func (r *Reader) WorkMS(pids []int) map[int]uint64 {
	type one struct {
		parent int
		work   uint64
	}
	all := map[int]one{}
	buf := make([]byte, statusFileSize)
	for _, pid := range r.pids() {
		if st, err := readStat(r.base(pid, 0), buf); err == nil {
			all[pid] = one{st.PPID, milliseconds(st.User + st.System + st.ChildUser + st.ChildSystem)}
		}
	}
	sums := map[int]uint64{}
	for pid, p := range all {
		for at, depth := pid, 0; at > 1 && depth < 64; depth++ {
			if slices.Contains(pids, at) {
				sums[at] += p.work
			}
			at = all[at].parent
		}
	}
	return sums
}

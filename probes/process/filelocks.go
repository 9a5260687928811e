package process

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/whyhang/whyhang/probes/evidence"
)

// fileLock is a line of /proc/locks (proc_locks(5)), or a "lock:" of fdinfo,
// which is written alike.
type fileLock struct {
	// ID numbers the line; a lock and those who wait for it share it.
	ID uint64
	// Waits: the line is of one who waits ("->").
	Waits bool
	// Type is FLOCK, POSIX, OFDLCK and so on; Mode is READ, WRITE and so on.
	Type, Mode string
	// PID is the process that asked for the lock, for one in FLOCK possibly
	// ended since; -1 for OFDLCK, 0 or less for remote ones.
	PID int
	// Device is "major:minor" in hexadecimal, Range the bytes ("0 EOF").
	Device string
	Inode  uint64
	Range  string
}

// parseFileLock reads one line; false if it is none.
func parseFileLock(line []byte) (fileLock, bool) {
	words := bytes.Fields(line)
	var l fileLock
	if len(words) < 8 || !bytes.HasSuffix(words[0], []byte(":")) {
		return l, false
	}
	var ok bool
	if l.ID, ok = number(words[0][:len(words[0])-1]); !ok {
		return l, false
	}
	words = words[1:]
	if string(words[0]) == "->" {
		l.Waits, words = true, words[1:]
	}
	if len(words) != 7 { // type, advisory, mode, PID, file, start, end
		return fileLock{}, false
	}
	pid, digits := 1, words[3]
	if digits[0] == '-' {
		pid, digits = -1, digits[1:]
	}
	n, ok := number(digits)
	if !ok || n >= 1<<31 {
		return fileLock{}, false
	}
	colon := bytes.LastIndexByte(words[4], ':')
	if colon < 0 {
		return fileLock{}, false
	}
	if l.Inode, ok = number(words[4][colon+1:]); !ok {
		return fileLock{}, false
	}
	l.PID = pid * int(n)
	l.Type, l.Mode = string(words[0]), string(words[2])
	l.Device, l.Range = string(words[4][:colon]), string(words[5])+" "+string(words[6])
	return l, true
}

// same says whether a line of fdinfo is that of a lock in /proc/locks. Two
// locks of one process for reading look alike; then both count.
func (l fileLock) same(o fileLock) bool {
	return l.Type == o.Type && l.Mode == o.Mode && l.PID == o.PID && l.Device == o.Device && l.Inode == o.Inode && l.Range == o.Range
}

func inodesOf(locks []fileLock) []uint64 {
	var inodes []uint64
	for _, l := range locks {
		if len(inodes) == 0 || inodes[len(inodes)-1] != l.Inode {
			inodes = append(inodes, l.Inode)
		}
	}
	return inodes
}

// blockedLock is one who waits for a lock, and the lock that is in the way.
// Waiters stand in a tree below the lock, those that would be in each other's
// way below each other; none of them moves before the lock at the root does.
type blockedLock struct{ waiter, root fileLock }

// parseLocks finds all waiters in the text of /proc/locks.
func parseLocks(b []byte) []blockedLock {
	var all []blockedLock
	var root fileLock
	for line := range bytes.Lines(b) {
		l, ok := parseFileLock(line)
		switch {
		case !ok:
		case !l.Waits:
			root = l
		case root.ID == l.ID && root.Type != "":
			all = append(all, blockedLock{l, root})
		}
	}
	return all
}

// maxLocksFile bounds /proc/locks: some 60,000 locks.
const maxLocksFile = 4 << 20

func (r *Reader) locksFile() ([]byte, error) {
	f, err := os.Open(r.dir + "/locks")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLocksFile+1))
	if err == nil && len(b) > maxLocksFile {
		err = errors.New("it is too long")
	}
	return b, err
}

func (r *Reader) blockedLocks() ([]blockedLock, error) {
	b, err := r.locksFile()
	return parseLocks(b), err
}

// fileLocksHeld are the locks that somebody holds, without those who wait.
func (r *Reader) fileLocksHeld() ([]fileLock, error) {
	b, err := r.locksFile()
	var held []fileLock
	for line := range bytes.Lines(b) {
		if l, ok := parseFileLock(line); ok && !l.Waits {
			held = append(held, l)
		}
	}
	return held, err
}

// lockTypes are the names in /proc/locks.
var lockTypes = map[evidence.BlockKind]string{
	evidence.BlockFlock: "FLOCK", evidence.BlockPosixLock: "POSIX", evidence.BlockOFDLock: "OFDLCK",
}

// fileLocks finds the locks in the way of each wait. /proc/locks names the
// process that waits (for flock, too, whichever thread it is) and the file. A
// wait that stands not there is for a lock of another machine.
func (r *Reader) fileLocks(waits []*blockedWait, scan *descriptorScan) {
	all, err := r.blockedLocks()
	if err != nil {
		for _, w := range waits {
			w.unsure("/proc/locks could not be read: " + err.Error())
		}
		return
	}
	type key struct {
		kind  string
		pid   int
		inode uint64
	}
	keyOf := func(w *blockedWait) key {
		k := key{lockTypes[w.b.Kind], w.pid, w.info.Inode}
		if w.b.Kind == evidence.BlockOFDLock {
			k.pid = -1
		}
		return k
	}
	threads := map[key]int{}
	for _, w := range waits {
		threads[keyOf(w)]++
	}
	for _, w := range waits {
		k, lines := keyOf(w), 0
		if k.inode == 0 && k.pid < 0 {
			w.unsure("this kernel does not tell which lock it waits for")
			continue
		}
		for _, b := range all {
			if b.waiter.Type != k.kind || b.waiter.PID != k.pid || k.inode != 0 && b.waiter.Inode != k.inode {
				continue
			}
			lines++
			w.roots = append(w.roots, b.root)
			scan.inodes[b.root.Inode] = true
		}
		// With fewer lines than threads it is not known whose are there.
		if lines < threads[k] {
			w.unsure("the lock it waits for is not in /proc/locks: a remote file system, or a holder that is not seen")
		}
	}
}

// lockWakers are the processes that hold the locks in the way. A lock of
// flock(2), or of an open file description, belongs to all processes that have
// inherited the descriptor; fdinfo shows it at each of them. One of POSIX
// belongs to a process, and to those that share its table of descriptors.
func (s *descriptorScan) lockWakers(w *blockedWait) {
	inherited := false
	for _, root := range w.roots {
		before := len(w.b.Wakers)
		for _, h := range s.locked[root.Inode] {
			for _, l := range h.info.Locks {
				if l.same(root) {
					w.waker(h.pid, -1)
				}
			}
		}
		switch root.Type {
		case "POSIX":
			if root.PID > 0 {
				w.waker(root.PID, -1)
			} else {
				w.unsure("the lock is held from another machine")
			}
		case "FLOCK", "OFDLCK":
			inherited = true
			if len(w.b.Wakers) == before && !s.holds(root) {
				w.unsure("who holds the lock is not seen")
			}
		default:
			w.unsure("a lock of type " + root.Type + " is in the way")
		}
	}
	w.scanned = inherited
}

// holds says whether some process holds the lock.
func (s *descriptorScan) holds(root fileLock) bool {
	for _, h := range s.locked[root.Inode] {
		for _, l := range h.info.Locks {
			if l.same(root) {
				return true
			}
		}
	}
	return false
}

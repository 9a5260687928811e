package process

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// blockedOf takes a system call for a wait that a process must end that can be
// named; false if it is none. It sees the call alone: whether the descriptor
// is a pipe, a socket or something else is found out by blockers.
//
// accept is none, as anybody may connect. A process of a 32-bit ABI has other
// numbers, and is not recognised.
func blockedOf(c call) (evidence.Blocked, bool) {
	b := evidence.Blocked{FD: int(int32(uint32(c.Args[0])))}
	switch c.Number {
	case unix.SYS_READ, unix.SYS_READV:
		b.Kind = evidence.BlockPipeRead
	case unix.SYS_WRITE, unix.SYS_WRITEV:
		b.Kind = evidence.BlockPipeWrite
	case unix.SYS_RECVFROM, unix.SYS_RECVMSG:
		b.Kind = evidence.BlockSocketRead
	case unix.SYS_SENDTO, unix.SYS_SENDMSG:
		b.Kind = evidence.BlockSocketWrite
	case unix.SYS_WAIT4, unix.SYS_WAITID:
		b.Kind, b.FD = evidence.BlockChild, -1
	case unix.SYS_FLOCK:
		b.Kind = evidence.BlockFlock
	case unix.SYS_FCNTL:
		switch uint32(c.Args[1]) {
		case unix.F_SETLKW:
			b.Kind = evidence.BlockPosixLock
		case unix.F_OFD_SETLKW:
			b.Kind = evidence.BlockOFDLock
		default:
			return evidence.Blocked{}, false
		}
	default:
		return evidence.Blocked{}, false
	}
	return b, true
}

// blockers are what the sleepers outside futex calls wait for, by process and
// sleeper.
type blockers []map[int]*evidence.Blocked

func (b blockers) of(process, sleeper int) *evidence.Blocked {
	if process >= len(b) {
		return nil
	}
	return b[process][sleeper]
}

// blockersLimit is how long it may take to find out who can end the waits. It
// takes milliseconds; what is not found by then stands in Unseen.
const blockersLimit = 500 * time.Millisecond

// blockers finds who can end the waits outside futex calls. It is called
// between the looks A and B: while a thread sleeps in one call, its descriptor
// cannot lead anywhere else, an empty pipe that it reads stays empty for it,
// and the lock it waits for stays taken.
//
// The descriptors of all processes are not read at one instant. One that is
// handed from a process that is not yet looked at to one that was can be
// missed, so two readings should agree.
func (r *Reader) blockers(ctx context.Context, procs []evidence.Process, a []answer[sleepers], all bool) blockers {
	waits := blockedWaits(procs, a)
	if len(waits) == 0 {
		return nil
	}
	deadline := time.Now().Add(blockersLimit)
	asleep := map[int]bool{}
	for i := range a {
		if s := &a[i].Value; len(s.tids) > 0 && len(s.tids) == len(s.waiting) {
			asleep[procs[i].PID] = true
		}
	}
	// The look has copies: if it is left behind, it writes to nothing shared.
	found := within(ctx, blockersLimit+blockersLimit/2, func() []evidence.Blocked {
		return r.resolve(slices.Clone(waits), asleep, all, deadline)
	})
	b := make(blockers, len(procs))
	for i := range waits {
		w := &waits[i]
		if !found.Done {
			w.unsure(found.Why)
			w.settle()
		} else {
			w.b = found.Value[i]
		}
		if b[w.process] == nil {
			b[w.process] = map[int]*evidence.Blocked{}
		}
		b[w.process][w.sleeper] = &w.b
	}
	return b
}

// blockedWait is a wait while its wakers are looked for.
type blockedWait struct {
	// Where it stands: the process in the list, the thread among its sleepers.
	process, sleeper int
	pid, tid         int
	netNS            string
	call             call
	b                evidence.Blocked
	// info is the waiting thread's own descriptor.
	info fdinfo
	// inode is that of the pipe, peer the other end of a unix socket.
	inode, peer uint64
	// roots are the locks in the way of a wait for a lock.
	roots []fileLock
	// scanned: the wakers were looked for among the descriptors of all
	// processes.
	scanned bool
	// Why the wakers may not be all: doubts are rare, gaps are not.
	doubts, gaps []string
}

// unsure says that there may well be other wakers.
func (w *blockedWait) unsure(why string) { w.gaps = append(w.gaps, why) }

// doubt says that there may be other wakers, although hardly ever.
func (w *blockedWait) doubt(why string) { w.doubts = append(w.doubts, why) }

// other says that the descriptor is nothing whose other end can be named.
func (w *blockedWait) other(why string) {
	w.b.Kind = evidence.BlockOther
	w.unsure(why)
}

// maxWakers bounds the list of one wait.
const maxWakers = 4096

// waker adds a process; fd is negative for locks and children.
func (w *blockedWait) waker(pid, fd int) {
	for _, have := range w.b.Wakers {
		if have.PID == pid {
			return
		}
	}
	if len(w.b.Wakers) == maxWakers {
		w.unsure("more processes than are listed")
		return
	}
	k := evidence.Waker{PID: pid}
	if fd >= 0 {
		k.FD = &fd
	}
	w.b.Wakers = append(w.b.Wakers, k)
}

// settle writes down why the wakers may not be all.
func (w *blockedWait) settle() {
	why := append(w.gaps, w.doubts...)
	seen := map[string]bool{}
	var once []string
	for _, s := range why {
		if !seen[s] {
			seen[s] = true
			once = append(once, s)
		}
	}
	w.b.Unseen = strings.Join(once, "; ")
	w.b.Likely = len(w.gaps) == 0 && len(w.doubts) > 0 && len(w.b.Wakers) > 0
}

// blockedWaits picks the sleepers outside futex calls.
func blockedWaits(procs []evidence.Process, a []answer[sleepers]) []blockedWait {
	var waits []blockedWait
	for i := range a {
		for n := range a[i].Value.waiting {
			s := &a[i].Value.waiting[n]
			if s.blocked == nil {
				continue
			}
			w := blockedWait{process: i, sleeper: n, pid: procs[i].PID, tid: s.tid, netNS: procs[i].NetNS, call: s.call, b: *s.blocked}
			if s.look.State != "S" {
				// In a page fault or behind a mutex of the kernel.
				w.unsure("it does not sleep where it waits for others (state " + s.look.State + ")")
			}
			waits = append(waits, w)
		}
	}
	return waits
}

package process

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// resolve finds out what each wait is for and who can end it: first the
// waiting threads' own descriptors, then one look at the descriptors of all
// processes for all waits together.
//
// asleep are the processes of which every thread is in the waits. all: name the
// wakers also where it is plain that nobody is stuck.
func (r *Reader) resolve(waits []blockedWait, asleep map[int]bool, all bool, deadline time.Time) []evidence.Blocked {
	scan := newDescriptorScan(r, deadline)
	var children, sockets, locks []*blockedWait
	for i := range waits {
		w := &waits[i]
		switch w.b.Kind {
		case evidence.BlockChild:
			children = append(children, w)
		case evidence.BlockFlock, evidence.BlockPosixLock, evidence.BlockOFDLock:
			if r.ownDescriptor(w) {
				locks = append(locks, w)
			}
		default:
			if !r.ownDescriptor(w) {
				break
			}
			switch {
			case strings.HasPrefix(w.b.Object, "pipe:["):
				r.pipe(w, scan)
			case strings.HasPrefix(w.b.Object, "socket:["):
				sockets = append(sockets, w)
			case strings.HasPrefix(w.b.Object, "/"):
				r.fifo(w, scan)
			default:
				w.other("the other end of such a descriptor cannot be named")
			}
		}
	}
	if len(children) > 0 {
		r.children(children)
	}
	if len(sockets) > 0 {
		if rest := unixSockets(r, sockets, scan); len(rest) > 0 {
			tcpSockets(r, rest, scan)
		}
	}
	if len(locks) > 0 {
		r.fileLocks(locks, scan)
	}
	looked := scan.wanted() && (all || !scan.looksOnlyAmongSleepers(waits, asleep))
	if looked {
		scan.run()
	}
	names := map[int]string{}
	out := make([]evidence.Blocked, len(waits))
	for i := range waits {
		w := &waits[i]
		if !looked {
			break
		}
		switch w.b.Kind {
		case evidence.BlockPipeRead, evidence.BlockPipeWrite:
			scan.pipeWakers(w)
		case evidence.BlockSocketRead, evidence.BlockSocketWrite:
			scan.socketWakers(w)
		case evidence.BlockFlock, evidence.BlockPosixLock, evidence.BlockOFDLock:
			scan.lockWakers(w)
		}
	}
	if slices.ContainsFunc(waits, func(w blockedWait) bool { return w.mayBeStuck(asleep) }) {
		scan.lookInSockets()
	}
	for i := range waits {
		w := &waits[i]
		if w.scanned {
			scan.doubts(w)
		}
		w.settle()
		for k := range w.b.Wakers {
			pid := w.b.Wakers[k].PID
			if _, ok := names[pid]; !ok {
				names[pid] = r.comm(pid)
			}
			w.b.Wakers[k].Name = names[pid]
		}
		out[i] = w.b
	}
	return out
}

// mayBeStuck: as far as is known by now, nobody who is awake can end the wait.
func (w *blockedWait) mayBeStuck(asleep map[int]bool) bool {
	return w.scanned && len(w.gaps) == 0 && !slices.ContainsFunc(w.b.Wakers, func(k evidence.Waker) bool { return !asleep[k.PID] })
}

// maxObject bounds the name of what is waited on.
const maxObject = 512

// ownDescriptor reads what the waiting thread's own descriptor leads to. It
// asks for the thread, not for the process: threads may have descriptor tables
// of their own (unshare(2), CLONE_FILES).
func (r *Reader) ownDescriptor(w *blockedWait) bool {
	dir := r.base(w.pid, 0) + "/task/" + strconv.Itoa(w.tid)
	fd := strconv.Itoa(w.b.FD)
	link := make([]byte, unix.PathMax)
	n, err := unix.Readlink(dir+"/fd/"+fd, link)
	if err != nil {
		w.unsure("its descriptor could not be read: " + err.Error())
		return false
	}
	w.b.Object = strings.ToValidUTF8(string(link[:min(n, maxObject)]), "?")
	b, err := readAt(unix.AT_FDCWD, dir+"/fdinfo/"+fd, make([]byte, statusFileSize))
	if err != nil {
		w.unsure("its descriptor could not be read: " + err.Error())
		return false
	}
	w.info = parseFDInfo(b)
	return true
}

// wchan is the kernel function in which a thread sleeps; "" if the kernel does
// not say.
func (r *Reader) wchan(pid, tid int) string {
	b, err := readAt(unix.AT_FDCWD, r.base(pid, 0)+"/task/"+strconv.Itoa(tid)+"/wchan", make([]byte, 128))
	if err != nil || string(b) == "0" {
		return ""
	}
	return string(b)
}

// comm is the name of a process; "" if it has ended.
func (r *Reader) comm(pid int) string {
	b, err := readAt(unix.AT_FDCWD, r.path(pid, "comm"), make([]byte, 2*maxComm))
	if err != nil {
		return ""
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	return strings.ToValidUTF8(string(b[:min(len(b), maxComm)]), "?")
}

// inodeOf reads "pipe:[N]" and "socket:[N]".
func inodeOf(link, prefix string) (uint64, bool) {
	inner, ok := strings.CutPrefix(link, prefix+":[")
	if !ok {
		return 0, false
	}
	inner, ok = strings.CutSuffix(inner, "]")
	if !ok {
		return 0, false
	}
	return number([]byte(inner))
}

package process

import (
	"context"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// owners turns the thread IDs that stand in memory into those of whyhang's
// /proc. They are IDs of the process's own PID namespace.
type owners struct {
	r     *Reader
	procs []evidence.Process
	a     []answer[sleepers]
	inNS  []map[int]int // by process: namespace TID to TID; made when needed
	// sharers knows who else has the memory of a lock.
	sharers sharers
}

func newOwners(ctx context.Context, r *Reader, procs []evidence.Process, a []answer[sleepers]) *owners {
	return &owners{r: r, procs: procs, a: a, inNS: make([]map[int]int, len(procs)), sharers: sharers{ctx: ctx, r: r}}
}

// futex fills in what was read of the word of sleeper n of process i, and who
// is meant by it.
func (o *owners) futex(i, n int, f *evidence.Futex, read answer[wordsOf], callers *callers) {
	if read.Done && read.Value.failed == "" { // also where no word is read
		f.Python = o.pythonLock(i, read.Value.words[n].python)
	}
	switch {
	case !readsWord(f):
	case !read.Done:
		f.Unread = read.Why
	case read.Value.failed != "":
		f.Unread = read.Value.failed
	default:
		w, s := read.Value.words[n], &o.a[i].Value
		if o.inNS[i] == nil {
			o.inNS[i] = read.Value.inNS
		}
		f.Word, f.Mutex, f.Local, f.Unread = w.word, w.mutex, w.local, w.unread
		var inLibc bool
		f.Caller, inLibc = callers.of(o.procs[i].PID, s.via, read.Value.maps, s.waiting[n].call.PC, w.stack)
		if w.owner != nil {
			strengthen(w.owner, w.mutex, f.Caller, inLibc)
			private := f.Private || f.Local
			ambiguous := !private && o.sharers.acrossNamespaces(o.procs, &o.procs[i], f.Addr, read.Value.maps)
			f.Owner = o.name(i, s.waiting[n].tid, w.owner, private, w.gone, ambiguous)
		}
	}
}

// name finds the thread that an owner is in whyhang's /proc. private: the lock
// is the process's own. gone: no thread that may be the owner lives. ambiguous:
// the ID may be one of another PID namespace.
func (o *owners) name(i, waiter int, w *evidence.LockOwner, private, gone, ambiguous bool) *evidence.LockOwner {
	if w.NSTID == 0 {
		return w
	}
	if w.Kind == evidence.KindThread {
		// pthread_join is for threads of the same process, and a live one: else
		// the word is something else that looks alike.
		if w.TID = o.thread(i, w.NSTID); w.TID == 0 {
			return nil
		}
		w.PID = o.procs[i].PID
		return w
	}
	if ambiguous {
		return w
	}
	tid, pid, own := o.owner(i, w.NSTID, private)
	if !private && tid == waiter && len(o.procs) > 1 {
		// A child made by clone(2) without glibc writes its parent's ID into locks
		// in memory that they share.
		w.Proof = evidence.ProofLayout
	}
	switch {
	case tid == 0, own && gone: // the first thread stays as a zombie when it ends
		w.Ended = gone
	default:
		w.TID, w.PID, w.Forked = tid, pid, !own && private
	}
	return w
}

// owner finds the owner of a lock that a thread of process i waits for: a
// thread of the process, else one of the tree or of the parent (a child that
// was forked while its parent held the lock has the parent's TID in its copy),
// else, for a lock in shared memory, of any process. own: of the process
// itself.
func (o *owners) owner(i, nsTID int, private bool) (tid, pid int, own bool) {
	if tid := o.thread(i, nsTID); tid != 0 {
		return tid, o.procs[i].PID, true
	}
	for j := range o.procs {
		if j == i || !sameNamespace(&o.procs[i], &o.procs[j]) {
			continue
		}
		if tid := o.thread(j, nsTID); tid != 0 {
			return tid, o.procs[j].PID, false
		}
	}
	if private {
		tid, pid = o.ofParent(i, nsTID)
		return tid, pid, false
	}
	if inNamespace(&o.procs[i]) {
		return 0, 0, false
	}
	st, err := readStatus(o.r.base(nsTID, 0), make([]byte, statusFileSize))
	if err != nil || st.Tgid == 0 {
		return 0, 0, false
	}
	return nsTID, st.Tgid, false
}

// ofParent finds a thread of the parent of process i that has that ID in the
// same PID namespace. The parent need not be in the tree.
func (o *owners) ofParent(i, nsTID int) (tid, pid int) {
	p := &o.procs[i]
	parent, err := readStatus(o.r.base(p.PPID, 0), make([]byte, statusFileSize))
	// A parent lives in the namespace of its child or in one above it.
	if p.PPID <= 0 || err != nil || len(parent.NSPID) != len(p.NSPID) {
		return 0, 0
	}
	if !inNamespace(p) {
		if _, err := readStat(o.r.path(p.PPID, "task/"+strconv.Itoa(nsTID)), make([]byte, statusFileSize)); err != nil {
			return 0, 0
		}
		return nsTID, p.PPID
	}
	tids, err := o.r.listTasks(p.PPID)
	if err != nil {
		return 0, 0
	}
	ids, _ := o.r.namespaceTIDs(p.PPID, tids)
	if tid := ids[nsTID]; tid != 0 {
		return tid, p.PPID
	}
	return 0, 0
}

// thread is the TID of the thread of process i with that ID in its namespace,
// 0 if it has none.
func (o *owners) thread(i, nsTID int) int {
	tids := o.a[i].Value.tids
	if !inNamespace(&o.procs[i]) {
		if _, ok := slices.BinarySearch(tids, nsTID); ok {
			return nsTID
		}
		return 0
	}
	if o.inNS[i] == nil {
		o.inNS[i], _ = o.r.namespaceTIDs(o.procs[i].PID, tids)
	}
	return o.inNS[i][nsTID]
}

// namespaceTIDs reads the last NSpid of every thread (proc_pid_status(5)).
// complete: none could not be read.
func (r *Reader) namespaceTIDs(pid int, tids []int) (m map[int]int, complete bool) {
	m = make(map[int]int, len(tids))
	buf := make([]byte, statusFileSize)
	for _, tid := range tids {
		b, err := readAt(unix.AT_FDCWD, r.path(pid, "task/"+strconv.Itoa(tid)+"/status"), buf)
		if err != nil {
			continue
		}
		if ids := parseStatus(b).NSPID; len(ids) > 0 {
			m[ids[len(ids)-1]] = tid
		}
	}
	return m, len(m) == len(tids)
}

// inNamespace says whether a process lives in a PID namespace below that of
// the /proc that is read.
func inNamespace(p *evidence.Process) bool { return len(p.NSPID) > 1 }

func sameNamespace(a, b *evidence.Process) bool {
	if a.PIDNS != "" && b.PIDNS != "" {
		return a.PIDNS == b.PIDNS
	}
	return len(a.NSPID) == len(b.NSPID)
}

package process

import (
	"errors"
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
}

func newOwners(r *Reader, procs []evidence.Process, a []answer[sleepers]) *owners {
	return &owners{r: r, procs: procs, a: a, inNS: make([]map[int]int, len(procs))}
}

// futex fills in what was read of the word of sleeper n of process i, and who
// is meant by it.
func (o *owners) futex(i, n int, f *evidence.Futex, read answer[wordsOf], callers *callers) {
	switch {
	case !readsWord(f):
	case !read.Done:
		f.Unread = read.Why
	case read.Value.failed != "":
		f.Unread = read.Value.failed
	default:
		w := read.Value.words[n]
		f.Word, f.Mutex, f.Local, f.Unread = w.word, w.mutex, w.local, w.unread
		f.Caller = callers.of(o.procs[i].PID, o.a[i].Value.via, read.Value.maps, w.stack)
		if w.owner != nil {
			f.Owner = o.name(i, f, *w.owner)
		}
	}
}

// name finds the thread that an owner is in whyhang's /proc.
func (o *owners) name(i int, f *evidence.Futex, w evidence.LockOwner) *evidence.LockOwner {
	strengthen(&w, f.Caller)
	if w.NSTID == 0 {
		return &w
	}
	if w.Kind == evidence.KindThread {
		// pthread_join is for threads of the same process, and a live one: else
		// the word is something else that looks alike.
		if w.TID = o.thread(i, w.NSTID); w.TID == 0 {
			return nil
		}
		w.PID = o.procs[i].PID
		return &w
	}
	own := false
	w.TID, w.PID, own = o.owner(i, w.NSTID, f.Private)
	switch {
	case w.TID == 0:
		w.Ended = o.hasEnded(i, w.NSTID, f.Private)
	case !own && f.Private:
		w.Forked = true
	}
	return &w
}

// owner finds the owner of a lock that a thread of process i waits for: a
// thread of the process, else one of the tree (a child that was forked while
// its parent held the lock has the parent's TID in its copy), else, for a
// lock in shared memory, of any process. own: of the process itself.
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
	if private || inNamespace(&o.procs[i]) {
		return 0, 0, false
	}
	st, err := readStatus(o.r.base(nsTID, 0), make([]byte, statusFileSize))
	if err != nil || st.Tgid == 0 {
		return 0, 0, false
	}
	return nsTID, st.Tgid, false
}

// hasEnded says whether no thread of that ID lives where the owner of a lock of
// process i would have to. It must not be guessed: a thread that was born
// after the threads were listed is asked for by its own name.
func (o *owners) hasEnded(i, nsTID int, private bool) bool {
	if inNamespace(&o.procs[i]) {
		if !private {
			return false // it may live in a process of that namespace outside the tree
		}
		// Its ID here is not known: only a list of threads that is the same now
		// as before says that it is none of them.
		tasks, err := openTasks(o.r.dir, o.procs[i].PID)
		if err != nil {
			return false
		}
		defer tasks.close()
		now, err := tasks.list()
		return err == nil && slices.Equal(now, o.a[i].Value.tids)
	}
	dir := o.r.base(nsTID, 0)
	if private {
		dir = o.r.path(o.procs[i].PID, "task/"+strconv.Itoa(nsTID))
	}
	_, err := readStat(dir, make([]byte, statusFileSize))
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
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
		o.inNS[i] = o.r.namespaceTIDs(o.procs[i].PID, tids)
	}
	return o.inNS[i][nsTID]
}

// namespaceTIDs reads the last NSpid of every thread (proc_pid_status(5)).
func (r *Reader) namespaceTIDs(pid int, tids []int) map[int]int {
	m := make(map[int]int, len(tids))
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
	return m
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

package process

import (
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

// name fills in who is meant by the words of a thread of process i.
func (o *owners) name(i int, f *evidence.Futex, w words) {
	if f.Mutex != nil && f.Mutex.OwnerNSTID != 0 {
		m := f.Mutex
		m.OwnerTID, m.OwnerPID = o.owner(i, m.OwnerNSTID, f.Private)
	}
	if w.joined != 0 {
		// pthread_join is for threads of the same process, and a live one: else
		// the word is something else that looks alike.
		if tid := o.thread(i, w.joined); tid != 0 {
			f.JoinTID, f.JoinVerified = tid, w.verified
		}
	}
}

// owner finds the owner of a mutex that a thread of process i waits for: a
// thread of the process, else one of the tree (a child that was forked while
// its parent held the lock has the parent's TID in its copy), else, for a
// mutex in shared memory, of any process.
func (o *owners) owner(i, nsTID int, private bool) (tid, pid int) {
	if tid := o.thread(i, nsTID); tid != 0 {
		return tid, o.procs[i].PID
	}
	for j := range o.procs {
		if j == i || !sameNamespace(&o.procs[i], &o.procs[j]) {
			continue
		}
		if tid := o.thread(j, nsTID); tid != 0 {
			return tid, o.procs[j].PID
		}
	}
	if private || inNamespace(&o.procs[i]) {
		return 0, 0
	}
	st, err := readStatus(o.r.base(nsTID, 0), make([]byte, statusFileSize))
	if err != nil || st.Tgid == 0 {
		return 0, 0
	}
	return nsTID, st.Tgid
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

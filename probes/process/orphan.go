package process

import (
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// living tells whether the owner that a lock names lives. It is asked while
// the words are read, as the answer must stand between two readings of the
// word: the owner's name is read, then no such thread is found, then the same
// name is read again. A thread that releases the lock and ends in between would
// otherwise be taken for one that ended with it.
type living struct {
	r *Reader
	p *evidence.Process
	s *sleepers
	// inNS are the threads by their ID in the process's namespace.
	inNS map[int]int
	dead map[deadKey]bool
}

type deadKey struct {
	nsTID int
	own   bool
}

// maxDead bounds how many owners of one process are looked for. More that ended
// stay unknown.
const maxDead = 64

// check finds out whether the owner that w names has ended.
func (l *living) check(m *memory, w *words, s *sleeper) {
	o := w.owner
	if o == nil || o.NSTID == 0 || o.Kind == evidence.KindThread {
		return
	}
	if !l.isDead(o.NSTID, s.futex.Private || w.local) {
		return
	}
	again := m.words(s)
	w.gone = again.owner != nil && again.owner.NSTID == o.NSTID && again.owner.Addr == o.Addr
}

// isDead says for sure that no thread of that ID lives where the owner would
// have to: among the threads of the process if its lock is its own, anywhere
// else. False is also "not known".
func (l *living) isDead(nsTID int, own bool) bool {
	if l.isKnown(nsTID) {
		return false
	}
	key := deadKey{nsTID, own}
	if dead, ok := l.dead[key]; ok {
		return dead
	}
	if len(l.dead) >= maxDead {
		return false
	}
	if l.dead == nil {
		l.dead = map[deadKey]bool{}
	}
	dead := l.isMissing(nsTID, own)
	l.dead[key] = dead
	return dead
}

// isKnown says whether the ID is that of a thread of the process that lived at
// look A. A first thread that has ended stays in the list, as a zombie.
func (l *living) isKnown(nsTID int) bool {
	leader, tids := l.p.PID, l.s.tids
	if inNamespace(l.p) {
		leader = l.p.NSPID[len(l.p.NSPID)-1]
		if l.inNS == nil {
			l.inNS, _ = l.r.namespaceTIDs(l.p.PID, tids)
		}
		if l.inNS[nsTID] == 0 {
			return false
		}
	} else if _, ok := slices.BinarySearch(tids, nsTID); !ok {
		return false
	}
	return nsTID != leader || l.s.via == l.p.PID
}

func (l *living) isMissing(nsTID int, own bool) bool {
	if !inNamespace(l.p) {
		if own {
			return l.r.isEnded(l.r.path(l.p.PID, "task/"+strconv.Itoa(nsTID)))
		}
		// Where /proc hides the processes of others (hidepid), it hides the
		// first one too.
		_, err := readStat(l.r.base(1, 0), make([]byte, statusFileSize))
		return err == nil && l.r.isEnded(l.r.base(nsTID, 0))
	}
	if !own {
		return false // it may live in a process of that namespace outside the tree
	}
	if nsTID == l.p.NSPID[len(l.p.NSPID)-1] {
		return l.r.isEnded(l.r.base(l.p.PID, 0))
	}
	// Its ID here is not known: only all threads together say that it is none
	// of them.
	all, complete := l.r.allNamespaceTIDs(l.p.PID)
	return complete && all[nsTID] == 0
}

// isEnded says for sure that the thread or process of that directory does not
// run any more.
func (r *Reader) isEnded(dir string) bool {
	st, err := readStat(dir, make([]byte, statusFileSize))
	if err != nil {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
	}
	return st.State == 'Z' || st.State == 'X'
}

// allNamespaceTIDs lists the threads of a process by their ID in its
// namespace. complete: none was left out. The kernel's list of threads may skip
// one while others end, so it has to have as many as the process says it has,
// and to be the same again at the end.
func (r *Reader) allNamespaceTIDs(pid int) (ids map[int]int, complete bool) {
	before, err := r.listTasks(pid)
	if err != nil {
		return nil, false
	}
	ids, complete = r.namespaceTIDs(pid, before)
	after, err := r.listTasks(pid)
	st, err2 := readStat(r.base(pid, 0), make([]byte, statusFileSize))
	return ids, complete && err == nil && err2 == nil && st.Threads == len(before) && slices.Equal(before, after)
}

func (r *Reader) listTasks(pid int) ([]int, error) {
	tasks, err := openTasks(r.dir, pid)
	if err != nil {
		return nil, err
	}
	defer tasks.close()
	return tasks.list()
}

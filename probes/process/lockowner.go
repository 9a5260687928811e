package process

import (
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// tidMask are the bits of a lock word that hold a TID where the kernel reads
// the word (linux/futex.h: FUTEX_TID_MASK).
const (
	tidMask        = 0x3fffffff
	futexWaiters   = 0x80000000 // somebody sleeps on the word
	futexOwnerDied = 0x40000000 // the kernel took the lock from an owner that ended
)

// readOwner takes the memory around the word at addr, of which raw is the
// first part, for the lock that it is, and finds whom it names.
func (m *memory) readOwner(w *words, addr uint64, raw []byte, f *evidence.Futex) {
	word := *w.word
	switch {
	case isInheritWait(f):
		w.owner = inheritOwner(addr, word)
	case isMutexWait(f, word):
		if w.mutex = m.mutexAt(addr, raw, f); w.mutex != nil {
			w.owner = &evidence.LockOwner{Kind: evidence.KindMutex, Addr: hexAddr(addr), NSTID: w.mutex.OwnerNSTID, Proof: evidence.ProofLayout}
			return
		}
		// musl joins with the call and the value of a glibc mutex.
		w.owner = m.muslJoined(addr, f)
	case namesTID(f):
		if w.mutex, w.owner = m.robustAt(addr, raw, f); w.owner == nil {
			w.owner = m.muslMutexAt(addr, f)
		}
	case isJoinWait(f, word):
		w.owner = m.joined(addr, word)
		// A shared rwlock waits in the same way for a 3, which is a TID as well
		// in a PID namespace.
		if isRWLockWait(f, word) && (w.owner == nil || w.owner.Proof == evidence.ProofLayout) {
			w.owner = m.rwlockAt(addr, f)
		}
	case isRWLockWait(f, word):
		w.owner = m.rwlockAt(addr, f)
	case isMuslJoinWait(f, word):
		w.owner = m.muslJoined(addr, f)
	}
}

// namesTID tells a plain wait for a word that holds a TID and the mark that
// somebody waits: robust mutexes of glibc, and those of musl. std::future
// waits for the mark alone.
func namesTID(f *evidence.Futex) bool {
	return f.Call == "futex" && f.Command == futexWait && !f.Timed &&
		f.Val&futexWaiters != 0 && f.Val&tidMask != 0 && f.Val&tidMask <= maxTID
}

// strengthen raises the proof of an owner by the function that the thread
// waits in. inLibc: the system call was made by the C library, in a function
// of its own and not in syscall(2) for somebody else.
func strengthen(o *evidence.LockOwner, mutex *evidence.MutexWords, caller string, inLibc bool) {
	if o.Proof != evidence.ProofLayout {
		return
	}
	in := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(caller, p) {
				return true
			}
		}
		return false
	}
	code := false
	switch o.Kind {
	case evidence.KindMutex, evidence.KindMuslMutex:
		code = in("mutex_lock", "mutex_timedlock", "mutex_cond_lock", "cond_") ||
			inLibc && mutex != nil && mutex.Kind&kindProtect != 0
	case evidence.KindRobustMutex:
		// The function that takes such a lock, and that with a ceiling, has no
		// name in the dynamic symbols and is jumped to, not called. But nothing
		// else in the C library waits for such a word.
		code = inLibc || in("mutex_lock", "mutex_cond_lock", "cond_")
	case evidence.KindRWLock:
		code = in("rwlock_")
	case evidence.KindThread:
		code = in("join")
	}
	if code {
		o.Proof = evidence.ProofCode
	}
}

package process

import (
	"encoding/binary"

	"github.com/whyhang/whyhang/probes/evidence"
)

// mutexBytes is how much of a pthread_mutex_t is read: the members that x86-64
// (40 bytes) and arm64 (48 bytes) have in common.
const mutexBytes = 40

// Bits of the kind of a mutex (glibc, sysdeps/nptl: pthreadP.h).
const (
	kindType      = 0x03 // normal, recursive, errorcheck, adaptive
	kindRecursive = 0x01
	kindRobust    = 0x10
	kindInherit   = 0x20
	kindProtect   = 0x40
	kindShared    = 0x80
	kindElision   = 0x300
)

// lockedWithWaiters is the word of a glibc lock that somebody sleeps on.
const lockedWithWaiters = 2

// maxTID is PID_MAX_LIMIT on 64 bit (proc_sys_kernel(5), pid_max).
const maxTID = 1 << 22

// maxUsers is more threads than any process has.
const maxUsers = 1_000_000

// ceilingShift is where the word of a mutex with priority protection holds its
// ceiling (glibc: PTHREAD_MUTEX_PRIO_CEILING_SHIFT).
const ceilingShift = 19

// isMutexWait tells the wait for a glibc mutex that is neither robust nor
// priority-inheriting: a plain wait for the word 2 to change. With priority
// protection there is a ceiling in the bits above.
func isMutexWait(f *evidence.Futex, word uint32) bool {
	return f.Call == "futex" && f.Command == futexWait && !f.Timed && f.Val == word && withoutCeiling(word) == lockedWithWaiters
}

func withoutCeiling(word uint32) uint32 { return word & (1<<ceilingShift - 1) }

// mutexWords takes mutexBytes apart.
func mutexWords(b []byte) evidence.MutexWords {
	at := func(i int) uint32 { return binary.NativeEndian.Uint32(b[i:]) }
	return evidence.MutexWords{
		Lock: at(0), Count: at(4), OwnerNSTID: int(at(8)), NUsers: at(12), Kind: at(16),
		ListZero: binary.NativeEndian.Uint64(b[24:]) == 0 && binary.NativeEndian.Uint64(b[32:]) == 0,
	}
}

// parseMutex takes bytes for a glibc pthread_mutex_t (struct
// __pthread_mutex_s, LP64). Other things wait with the same call and the same
// word (stdio locks, plain memory), so everything around the word has to fit.
// The owner is the TID in memory; 0 while the mutex changes hands.
func parseMutex(b []byte, f *evidence.Futex) (evidence.MutexWords, bool) {
	if len(b) < mutexBytes {
		return evidence.MutexWords{}, false
	}
	m := mutexWords(b)
	// Recursive ones count how often they are held; those with a ceiling are
	// always held once.
	protect := m.Kind&kindProtect != 0
	counts := m.Kind&kindType == kindRecursive || protect
	switch {
	case withoutCeiling(m.Lock) != lockedWithWaiters, m.Lock != lockedWithWaiters && !protect, m.OwnerNSTID > maxTID:
	case m.Kind&^(kindType|kindShared|kindElision|kindProtect) != 0: // robust and others are another layout or protocol
	case (m.Kind&kindShared != 0) == f.Private:
	case counts && m.Count == 0 && m.OwnerNSTID != 0, !counts && m.Count != 0:
	case m.NUsers == 0 || m.NUsers > maxUsers:
	case !m.ListZero:
	default:
		return m, true
	}
	return evidence.MutexWords{}, false
}

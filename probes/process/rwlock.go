package process

import (
	"encoding/binary"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// A glibc pthread_rwlock_t (struct __pthread_rwlock_arch_t, LP64, since glibc
// 2.25): readers +0, writers +4, the phase +8, the writers' futex +12, nothing
// +16 and +20, the writer's TID +24, shared +28, flags +48. Readers wait at +8
// for the writer to end its phase, writers at +12 for another writer. A writer
// that waits for readers does so at +8 with another value; readers are only
// counted.
const (
	rwlockBytes       = 56
	rwlockPhase       = 8
	rwlockWriters     = 12
	rwlockWriter      = 24
	rwlockWaitValue   = 3 // somebody waits (2), for a write phase or a writer to end (1)
	rwlockWritePhase  = 1 // in readers: a writer holds the lock, or the last one left it so
	rwlockReaderShift = 3 // in readers: above are their number
	rwlockMaxFlags    = 2 // PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
)

// isRWLockWait tells the wait of a reader or a writer for a writer.
func isRWLockWait(f *evidence.Futex, word uint32) bool {
	return f.Call == "futex" && f.Op&^futexPrivate == futexWaitBitset|futexRealtime && !f.Timed &&
		f.Val == rwlockWaitValue && word == rwlockWaitValue
}

// parseRWLock takes bytes for a rwlock that a thread waits for at the word at
// offset. free: no writer holds it, those who wait do it for a writer that
// itself waits for readers. The writer is 0 while the lock changes hands.
func parseRWLock(b []byte, offset int, private bool) (writer int, free, ok bool) {
	if len(b) < rwlockBytes {
		return 0, false, false
	}
	at := func(i int) uint32 { return binary.NativeEndian.Uint32(b[i:]) }
	tid := at(rwlockWriter)
	switch {
	case offset != rwlockPhase && offset != rwlockWriters || at(offset) != rwlockWaitValue:
	case at(rwlockPhase) > 3, at(rwlockWriters) > 3:
	case at(16) != 0, at(20) != 0, at(36) != 0, binary.NativeEndian.Uint64(b[40:]) != 0:
	case tid > maxTID, (at(28) == 0) != private, at(28) > 1, at(48) > rwlockMaxFlags, at(52) != 0:
	case tid != 0 && at(0)&rwlockWritePhase == 0: // nobody writes while readers have their phase
	default:
		return int(tid), tid == 0 && at(0)&rwlockWritePhase == 0 && at(0)>>rwlockReaderShift > 0, true
	}
	return 0, false, false
}

// rwlockAt reads the rwlock around the word at addr, which is one of two in
// it; nil if it is none, or if nobody is named.
func (m *memory) rwlockAt(addr uint64, f *evidence.Futex) *evidence.LockOwner {
	var b [rwlockBytes]byte
	for try := 1; ; try++ {
		var changing *evidence.LockOwner
		for _, offset := range []int{rwlockPhase, rwlockWriters} {
			base := addr - uint64(offset)
			if base > addr || m.read(base, b[:]) != nil {
				continue
			}
			writer, free, ok := parseRWLock(b[:], offset, f.Private)
			if !ok || free {
				continue
			}
			o := &evidence.LockOwner{Kind: evidence.KindRWLock, Addr: hexAddr(base), NSTID: writer, Proof: evidence.ProofLayout}
			if writer != 0 {
				return o
			}
			changing = o
		}
		if changing == nil || try == ownerTries {
			return changing
		}
		time.Sleep(ownerPause)
	}
}

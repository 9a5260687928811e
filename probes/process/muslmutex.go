package process

import (
	"encoding/binary"

	"github.com/whyhang/whyhang/probes/evidence"
)

// A musl pthread_mutex_t (LP64): type +0, lock +4, number of those who wait
// +8. Threads wait at the lock, which holds the owner's TID for every type
// but the normal one, whose owner nobody knows.
const (
	muslLock    = 4
	muslWaiters = 8
	muslBytes   = 12

	muslTypeMask = 0x03 // normal, recursive, errorcheck
	muslRobust   = 0x04
	muslShared   = 0x80
	muslTypeLast = 2
)

// parseMuslMutex takes bytes for a musl mutex that names its owner; 0 while it
// changes hands.
func parseMuslMutex(b []byte, f *evidence.Futex) (tid int, ok bool) {
	if len(b) < muslBytes {
		return 0, false
	}
	at := func(i int) uint32 { return binary.NativeEndian.Uint32(b[i:]) }
	kind, lock, waiters := at(0), at(muslLock), at(muslWaiters)
	switch {
	case kind&^(muslTypeMask|muslRobust|muslShared) != 0, kind&muslTypeMask > muslTypeLast:
	case kind&(muslTypeMask|muslRobust) == 0: // the normal type holds EBUSY in the place of a TID
	case (kind&muslShared != 0) == f.Private:
	case lock&tidMask > maxTID, waiters == 0, waiters > maxUsers:
	case lock&futexWaiters == 0, lock&futexOwnerDied != 0:
		return 0, true
	default:
		return int(lock & tidMask), true
	}
	return 0, false
}

// muslMutexAt reads the musl mutex whose lock word is at addr; nil if it is
// none.
func (m *memory) muslMutexAt(addr uint64, f *evidence.Futex) *evidence.LockOwner {
	var b [muslBytes]byte
	base := addr - muslLock
	if base > addr || m.read(base, b[:]) != nil {
		return nil
	}
	tid, ok := parseMuslMutex(b[:], f)
	if !ok {
		return nil
	}
	return &evidence.LockOwner{Kind: evidence.KindMuslMutex, Addr: hexAddr(base), NSTID: tid, Proof: evidence.ProofLayout}
}

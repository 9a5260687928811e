package process

import (
	"encoding/binary"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// inconsistent stands in the owner's place of a robust mutex whose last owner
// ended with it, until the new one has said that all is well again (glibc,
// pthreadP.h: PTHREAD_MUTEX_INCONSISTENT). The word names the new one.
const inconsistent = 1<<31 - 1

// parseRobust takes bytes for a robust glibc mutex, which waits with a shared
// call wherever it lies. The word holds the owner's TID, which stands a second
// time in the owner's place. settled is false while the lock changes hands:
// then the two differ, or there is no owner at all.
func parseRobust(b []byte, f *evidence.Futex) (m evidence.MutexWords, settled, ok bool) {
	if len(b) < mutexBytes || f.Private {
		return evidence.MutexWords{}, false, false
	}
	m = mutexWords(b)
	second := uint32(m.OwnerNSTID)
	m.OwnerNSTID = int(m.Lock & tidMask)
	switch {
	case m.Kind&^kindType != kindRobust|kindShared, m.OwnerNSTID > maxTID:
		return evidence.MutexWords{}, false, false
	case m.OwnerNSTID == 0: // the kernel took it from an owner that ended, or it is just free
		return m, false, m.Lock&^(futexWaiters|futexOwnerDied) == 0
	case second > maxTID && second != inconsistent, m.NUsers > maxUsers:
		return evidence.MutexWords{}, false, false
	}
	settled = m.Lock&futexWaiters != 0 && (second == m.Lock&tidMask || second == inconsistent) &&
		m.Count > 0 && m.NUsers > 0 && binary.NativeEndian.Uint64(b[24:]) != 0 && binary.NativeEndian.Uint64(b[32:]) != 0
	return m, settled, true
}

// robustAt reads the robust mutex whose first bytes are raw; nil if it is none.
func (m *memory) robustAt(addr uint64, raw []byte, f *evidence.Futex) (*evidence.MutexWords, *evidence.LockOwner) {
	for try := 1; len(raw) == mutexBytes; try++ {
		mutex, settled, ok := parseRobust(raw, f)
		if !ok {
			return nil, nil
		}
		if !settled && try < ownerTries {
			time.Sleep(ownerPause)
			if m.read(addr, raw) != nil {
				return nil, nil
			}
			continue
		}
		if !settled { // never seen at rest: nobody is the owner for sure
			mutex.OwnerNSTID = 0
		}
		return &mutex, &evidence.LockOwner{Kind: evidence.KindRobustMutex, Addr: hexAddr(addr), NSTID: mutex.OwnerNSTID, Proof: evidence.ProofLayout}
	}
	return nil, nil
}

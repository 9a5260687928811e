package process

import "github.com/whyhang/whyhang/probes/evidence"

// isInheritWait tells the wait for a mutex with priority inheritance: the
// kernel itself hands such a lock over, and refuses words that name nobody.
func isInheritWait(f *evidence.Futex) bool {
	return f.Call == "futex" && !f.Timed && (f.Command == futexLockPI || f.Command == futexLockPI2)
}

// inheritOwner reads the word of such a lock: the owner's TID, and marks
// (futex(2), "Priority-inheritance futexes"). The kernel lends the priority of
// those who wait to the thread of that ID, so it is that one for sure.
//
// A thread that closes a circle of such locks is refused (EDEADLK), and glibc
// parks it for ever on a word of its own stack: that wait names nobody.
func inheritOwner(addr uint64, word uint32) *evidence.LockOwner {
	tid := word & tidMask
	if tid > maxTID {
		return nil
	}
	return &evidence.LockOwner{Kind: evidence.KindPIMutex, Addr: hexAddr(addr), NSTID: int(tid), Proof: evidence.ProofKernel}
}

package process

import (
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// readOwner takes the memory around the word at addr, of which raw is the
// first part, for the lock that it is, and finds whom it names.
func (m *memory) readOwner(w *words, addr uint64, raw []byte, f *evidence.Futex) {
	word := *w.word
	switch {
	case isMutexWait(f, word):
		if w.mutex = m.mutexAt(addr, raw, f); w.mutex != nil {
			w.owner = &evidence.LockOwner{Kind: evidence.KindMutex, Addr: hexAddr(addr), NSTID: w.mutex.OwnerNSTID, Proof: evidence.ProofLayout}
		}
	case isJoinWait(f, word):
		w.owner = &evidence.LockOwner{Kind: evidence.KindThread, NSTID: int(word), Proof: evidence.ProofLayout}
		if m.isTIDOfThread(addr) {
			w.owner.Proof = evidence.ProofKernel
		}
	}
}

// strengthen raises the proof of an owner by the function that the thread
// waits in.
func strengthen(o *evidence.LockOwner, caller string) {
	if o.Proof != evidence.ProofLayout {
		return
	}
	if o.Kind == evidence.KindMutex && (strings.Contains(caller, "mutex_lock") || strings.Contains(caller, "cond_")) {
		o.Proof = evidence.ProofCode
	}
}

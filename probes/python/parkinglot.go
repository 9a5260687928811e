package python

import "github.com/whyhang/whyhang/probes/evidence"

// Since 3.13 waiters of small locks wait in a parking lot: each on a semaphore
// in a struct wait_entry on its own stack, with the address of the lock in the
// word before it (Python/parking_lot.c).
const parkedWithin = 1 << 14

// Fields of ThreadHandle (Modules/_threadmodule.c, 3.13 to 3.15): a node of a
// list, another, pthread_self() of the thread, and the event that its end sets.
const (
	handleIdent   = 32
	handleExiting = 57
)

// parked says what a thread in the parking lot waits for.
func (p *Interpreters) parked(sem uint64) *evidence.PythonLock {
	at, err := p.mem.word(sem - 8)
	if err != nil || at == 0 {
		return nil
	}
	if k := p.lock(at - p.l.sizeofHead()); k != nil {
		return p.evidenceOf(k)
	}
	return p.joined(at)
}

// joined says which thread a Thread.join waits for, if at is the event of its
// handle. The handle is in a list of all: the next one points back to it.
func (p *Interpreters) joined(at uint64) *evidence.PythonLock {
	handle := at - handleExiting
	if handle%8 != 0 {
		return nil
	}
	var raw [handleIdent + 8]byte
	if p.mem.read(handle, raw[:]) != nil {
		return nil
	}
	next := wordAt(raw[:], 0)
	if back, err := p.mem.word(next + 8); err != nil || back != handle {
		return nil
	}
	k := &evidence.PythonLock{Kind: evidence.PythonJoin, Object: hexAddr(handle)}
	k.OwnerNSTID, _ = p.threadOf(wordAt(raw[:], handleIdent))
	return k
}

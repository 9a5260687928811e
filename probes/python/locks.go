package python

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// lockType is what the type of an object is, as far as locks go.
type lockType int

const (
	noLock lockType = iota
	plainLock
	recursiveLock
	conditionVariable
)

// lock is a threading.Lock or threading.RLock (Modules/_threadmodule.c).
type lock struct {
	kind lockType
	at   uint64
	// sem is the sem_t that waiters wait for, byte the byte in the object that
	// they wait for in the parking lot. Either is used: sem up to 3.12, byte
	// since 3.14, in 3.13 it depends on the patch level (3.13.0 has semaphores,
	// 3.13.15 bytes in a Lock).
	sem, byte uint64
	// owner (pthread_self()) and count are an RLock's.
	owner, count uint64
	// weakrefs is a Lock's first weak reference, up to 3.12.
	weakrefs uint64
}

// typeOf tells the types of locks by their names. Names of other built-in types
// may lie in files and be unreadable: they are no locks then.
func (r *reader) typeOf(at uint64) lockType {
	if t, ok := r.types[at]; ok {
		return t
	}
	t := noLock
	if at != 0 && at%8 == 0 {
		switch r.typeName(at) {
		case "_thread.lock":
			t = plainLock
		case "_thread.RLock":
			t = recursiveLock
		case "Condition":
			t = conditionVariable
		}
	}
	r.types[at] = t
	return t
}

// heapType is the flag of types that are objects on the heap.
const heapType = 1 << 9

// typeName is the full name of a type; "" if it cannot be read. In 3.10 that of
// a type of C code on the heap lies in a file, but not the name without its
// module; types of Python code have both in memory.
func (r *reader) typeName(at uint64) string {
	name, err := r.mem.word(at + r.l.typeName)
	if err != nil {
		return ""
	}
	if s := r.cstring(name); s != "" || r.l.typeHeapName == 0 {
		return s
	}
	if flags, err := r.mem.word(at + r.l.typeFlags); err != nil || flags&heapType == 0 {
		return ""
	}
	if name, err = r.mem.word(at + r.l.typeHeapName); err != nil {
		return ""
	}
	return "_thread." + r.text(name, maxName)
}

// lock reads the object at an address; nil if it is no lock.
func (r *reader) lock(at uint64) *lock {
	if k, ok := r.objects[at]; ok {
		return k
	}
	k := r.readLock(at)
	r.objects[at] = k
	if k != nil {
		r.words[k.sem], r.words[k.byte] = k, k
	}
	return k
}

func (r *reader) readLock(at uint64) *lock {
	if at == 0 || at%8 != 0 {
		return nil
	}
	head := r.l.sizeofHead()
	raw, err := r.mem.bytes(at, head+24)
	if err != nil {
		return nil
	}
	k := &lock{at: at, kind: r.typeOf(wordAt(raw, r.l.objectType))}
	switch k.kind {
	case plainLock, recursiveLock:
	default:
		return nil
	}
	k.sem, k.byte = wordAt(raw, head), at+head
	switch {
	case k.kind == recursiveLock:
		k.owner, k.count = wordAt(raw, head+8), wordAt(raw, head+16)
		if r.l.version.atLeast(14) && k.owner != 0 {
			k.count++ // there it counts how often it was taken again
		}
	case r.l.threadSentinel != 0:
		k.weakrefs = wordAt(raw, head+8)
	}
	return k
}

// Wait is a thread that sleeps in a futex call.
type Wait struct {
	// NSTID is the thread, as an ID of its PID namespace.
	NSTID int
	// Addr is the futex word, SP the stack pointer.
	Addr, SP uint64
	Timed    bool
}

// Lock says what a thread waits for in CPython's own terms; nil if it is
// nothing of Python, or not known.
func (p *Interpreters) Lock(w Wait) *evidence.PythonLock {
	if !p.native[w.NSTID] {
		return nil
	}
	// Waiters for the GIL look up every 5 ms.
	if g := p.gilOf(w.Addr); g != nil {
		if !w.Timed {
			return nil
		}
		k := &evidence.PythonLock{Kind: evidence.PythonGILWait}
		// Who takes it is named a moment later: it may be the one before.
		if g.locked && g.nstid != w.NSTID {
			k.OwnerNSTID = g.nstid
		}
		return k
	}
	if w.Timed {
		return nil
	}
	if p.l.version.atLeast(13) && w.Addr >= w.SP && w.Addr-w.SP < parkedWithin {
		// Memory of malloc may follow right behind a stack, too.
		if k := p.parked(w.Addr); k != nil {
			return k
		}
	}
	if p.l.version.atLeast(14) {
		return nil
	}
	k := p.words[w.Addr]
	if k == nil || k.sem != w.Addr {
		k = p.lockOnStack(w.Addr, w.SP)
	}
	return p.evidenceOf(k)
}

func (p *Interpreters) evidenceOf(k *lock) *evidence.PythonLock {
	if k == nil {
		return nil
	}
	e := &evidence.PythonLock{Kind: evidence.PythonMutex, Object: hexAddr(k.at)}
	if k.kind == recursiveLock {
		e.Kind = evidence.PythonRLock
		if k.owner != 0 {
			gone := false
			e.OwnerNSTID, gone = p.threadOf(k.owner)
			e.OwnerGone, e.Count = gone && p.complete, k.count
		}
		return e
	}
	if owner, ok := p.sentinelOf(k); ok {
		e.Kind, e.OwnerNSTID = evidence.PythonJoin, owner
		return e
	}
	// The waiter itself may be among them: then nobody but it would release it.
	e.Inside = slices.Compact(slices.Clone(p.inside[k.at]))
	return e
}

// threadOf is the thread that pthread_self() names; 0 if it is not known. gone:
// there is none.
func (p *Interpreters) threadOf(ident uint64) (tid int, gone bool) {
	if tid := p.idents[ident]; tid != 0 {
		return tid, false
	}
	// It may have begun after the threads were listed.
	return p.tidOfTCB(ident)
}

// The object of a lock lies in a register or variable of the function that
// waits for it: at sp+224 to sp+248 in builds of 3.11 to 3.13.
const (
	stackSearched   = 2048
	maxStackGuesses = 96
)

// lockOnStack finds the lock object of a semaphore among the pointers on the
// stack of the thread that waits for it.
func (p *Interpreters) lockOnStack(sem, sp uint64) *lock {
	var stack []byte
	for n := uint64(stackSearched); n >= 256 && stack == nil; n /= 2 {
		stack, _ = p.mem.bytes(sp, n) // it may end sooner
	}
	guesses := 0
	for ; len(stack) >= 8 && guesses < maxStackGuesses; stack = stack[8:] {
		at := wordAt(stack, 0)
		if at < 1<<16 || at >= 1<<47 || at%16 != 0 || at-sp < stackSearched {
			continue
		}
		if _, seen := p.objects[at]; seen {
			continue // it would be in words
		}
		guesses++
		if k := p.lock(at); k != nil && k.sem == sem {
			return k
		}
	}
	return nil
}

package python

// Up to 3.12 Thread.join waits for a Lock that names nobody: Thread._tstate_lock.
// The thread has made and taken it, and its state has a weak reference to it in
// on_delete_data: the end of the thread releases the lock through that
// (Modules/_threadmodule.c, thread__set_sentinel and release_sentinel).

// nameSentinels notes the threads by those weak references. Each is of one
// thread: if two states have the same, it is not known whose it is.
func (p *Interpreters) nameSentinels(states []threadState) {
	for i := range states {
		s := &states[i]
		if s.sentinel == 0 {
			continue
		}
		id := s.nstid
		if _, twice := p.sentinels[s.sentinel]; twice {
			id = 0
		}
		p.sentinels[s.sentinel] = id
	}
}

// sentinelOf is the thread whose end releases a lock; 0 if it is not known
// which thread that is. ok: the end of a thread does. Lock and reference point
// to each other: a reference without a callback is the first of its object's
// (Objects/weakrefobject.c, PyWeakref_NewRef).
func (p *Interpreters) sentinelOf(k *lock) (nstid int, ok bool) {
	ref := k.weakrefs
	if ref == 0 || ref%8 != 0 {
		return 0, false
	}
	if nstid, ok = p.sentinels[ref]; !ok {
		return 0, false
	}
	object, err := p.mem.word(ref + p.l.weakrefObject)
	if err != nil || object != k.at {
		return 0, false
	}
	return nstid, true
}

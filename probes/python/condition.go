package python

// conditionLock is the lock of a threading.Condition: the one attribute that is
// a lock, `_lock`. Nil if the object is no Condition, or keeps
// its attributes in another way than new ones do.
func (r *reader) conditionLock(at uint64) *lock {
	if at == 0 || at%8 != 0 {
		return nil
	}
	kind, err := r.mem.word(at + r.l.objectType)
	if err != nil || r.typeOf(kind) != conditionVariable {
		return nil
	}
	values, err := r.instanceValues(at)
	if err != nil || values == 0 {
		return nil
	}
	for n := range uint64(maxAttributes) {
		value, err := r.mem.word(values + 8*n)
		if err != nil {
			return nil
		}
		if k := r.lock(value); k != nil {
			return k
		}
	}
	return nil
}

// maxAttributes is how many attributes are looked at. A Condition has five to
// eight; up to 3.13 the lock is the first, in 3.14 any.
const maxAttributes = 12

// instanceValues is the address of the values of an object's attributes.
func (r *reader) instanceValues(at uint64) (uint64, error) {
	switch minor := r.l.version.Minor; {
	case minor >= 13:
		// Behind the object, after four bytes of counts (struct _dictvalues).
		return at + r.l.sizeofHead() + 8, nil
	case minor == 12:
		// Before the object and its two words for the collector: one less than
		// the address, or that of a dict (union _PyDictOrValues).
		values, err := r.mem.word(at - 24)
		if values&1 == 0 {
			return 0, err
		}
		return values + 1, err
	case minor == 11:
		return r.mem.word(at - 32)
	}
	// 3.10: in a dict, which the type says where to find (tp_dictoffset), and
	// that shares its keys with others (ma_values).
	kind, err := r.mem.word(at + r.l.objectType)
	if err != nil {
		return 0, err
	}
	offset, err := r.mem.word(kind + r.l.typeDictOffset)
	if err != nil || offset == 0 || offset > 1<<10 {
		return 0, err
	}
	dict, err := r.mem.word(at + offset)
	if err != nil || dict == 0 {
		return 0, err
	}
	return r.mem.word(dict + r.l.dictValues)
}

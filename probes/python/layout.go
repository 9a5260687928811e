package python

// layout says where things stand in the structures of one version of CPython:
// offsets and sizes in bytes. Names begin with the structure.
type layout struct {
	version Version

	runtimeInterpreters uint64 // _PyRuntime.interpreters.head
	runtimeGIL          uint64 // _PyRuntime.ceval.gil, the structure itself; up to 3.11

	interpreterNext    uint64
	interpreterID      uint64
	interpreterThreads uint64 // head of the list of thread states
	interpreterGIL     uint64 // ceval.gil, a pointer; since 3.12

	gilEnabled             uint64 // free-threaded builds only
	gilHolder, gilLocked   uint64
	gilSwitches, gilCond   uint64
	threadNext             uint64
	threadInterpreter      uint64
	threadID               uint64 // pthread_self()
	threadNativeID         uint64 // gettid(); since 3.11
	threadFrame            uint64 // the innermost frame; up to 3.10 a PyFrameObject
	threadCFrame           uint64 // 3.11 and 3.12: a structure that points to it
	threadSentinel         uint64 // on_delete_data; up to 3.12
	cframeFrame            uint64
	frameCode              uint64
	framePrevious          uint64
	frameInstr             uint64 // since 3.11: instruction pointer
	frameLasti             uint64 // 3.10: instruction number
	frameOwner             uint64
	frameLocals            uint64 // local variables, then the value stack
	frameStack             uint64 // 3.10: pointer to the value stack
	frameBlocks            uint64 // 3.10: number of blocks
	frameBlockStack        uint64
	frameBytecode          uint64 // 3.14 free-threaded: which copy of the code
	codeFile, codeName     uint64
	codeQualName           uint64
	codeFirstLine          uint64
	codeLines              uint64
	codeExceptions         uint64
	codeNames              uint64 // co_names: attributes and globals that it uses
	codeLocals             uint64 // number of slots before the value stack
	codeBytes              uint64 // since 3.11 the code itself, before a pointer to bytes
	codeCopies             uint64 // 3.14 free-threaded: copies of the code by thread
	objectType, objectSize uint64
	typeName               uint64
	typeFlags              uint64 // this and the next three: 3.10 only
	typeHeapName           uint64 // ht_name of PyHeapTypeObject
	typeDictOffset         uint64 // where objects of a type have their __dict__
	dictValues             uint64
	bytesData              uint64
	tupleItems             uint64
	stringLength           uint64
	stringState            uint64
	stringASCII            uint64 // size of a PyASCIIObject
	stringCompact          uint64 // size of a PyCompactUnicodeObject
	methodSelf             uint64 // of PyMethodObject and PyCFunctionObject
	weakrefObject          uint64 // up to 3.12

	stateKindShift uint // where in the state word the kind begins

	sizeofThread, sizeofFrame, sizeofCode uint64
}

// sizeofHead is the size of PyObject, which a structure's own fields follow.
func (l *layout) sizeofHead() uint64 { return l.objectType + 8 }

// derive fills in what follows from the rest in all known versions
// (testdata/offsets.c prints it).
func (l *layout) derive() {
	head := l.sizeofHead()
	l.methodSelf = head + 8
	// co_consts, co_names, co_exceptiontable follow the head with its size; the
	// number of slots follows the first line.
	l.codeExceptions = l.objectSize + 8 + 16
	l.codeNames = l.objectSize + 8 + 8
	l.tupleItems = l.objectSize + 8
	l.codeLocals = l.codeFirstLine + 4
	if l.stateKindShift == 0 {
		l.stateKindShift = 2
	}
	l.gilSwitches = l.gilLocked + 8
	l.gilCond = l.gilLocked + 16
}

// sizeofCond is the size of pthread_cond_t in glibc and musl, on LP64.
const sizeofCond = 48

// plausible says whether every offset lies in a structure of sane size: those
// that a process says of itself may be anything.
func (l *layout) plausible() bool {
	const most = 1 << 14
	for _, size := range []uint64{l.sizeofThread, l.sizeofFrame, l.sizeofCode} {
		if size < 8 || size > most {
			return false
		}
	}
	inside := func(size uint64, offsets ...uint64) bool {
		for _, o := range offsets {
			if o > size-8 {
				return false
			}
		}
		return true
	}
	return inside(l.sizeofThread, l.threadNext, l.threadInterpreter, l.threadID, l.threadNativeID, l.threadFrame, l.threadCFrame, l.threadSentinel) &&
		inside(l.sizeofFrame, l.frameCode, l.framePrevious, l.frameInstr, l.frameLocals, l.frameBlocks, l.frameStack) && l.frameOwner < l.sizeofFrame &&
		inside(l.sizeofCode, l.codeFile, l.codeName, l.codeQualName, l.codeLines, l.codeExceptions, l.codeNames) && l.codeFirstLine+8 <= l.sizeofCode &&
		inside(256, l.gilHolder, l.gilCond) &&
		inside(1<<21, l.runtimeInterpreters, l.runtimeGIL, l.interpreterNext, l.interpreterID, l.interpreterThreads, l.interpreterGIL, l.codeBytes) &&
		inside(256, l.objectType, l.objectSize, l.typeName, l.bytesData, l.stringLength, l.stringState, l.stringASCII, l.stringCompact)
}

// layoutOf is the layout of the versions that do not describe themselves.
func layoutOf(v Version) (layout, bool) {
	if v.FreeThreaded || v.Major != 3 {
		return layout{}, false
	}
	switch v.Minor {
	case 10:
		return layout310, true
	case 11:
		return layout311, true
	case 12:
		return layout312, true
	}
	return layout{}, false
}

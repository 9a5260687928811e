package python

// frame is one frame of a thread's Python stack.
type frame struct {
	at uint64
	// code is nil for frames that stand for C code.
	code *code
	// unit is the number of the instruction that runs, in code units of two
	// bytes; -1 if not known.
	unit     int
	line     int
	previous uint64
	// raw is the frame's structure.
	raw []byte
}

// Frames that belong to the C stack or the interpreter itself have no code of
// their own: FRAME_OWNED_BY_CSTACK is 3 in 3.12 and 3.13; in 3.14 that is
// FRAME_OWNED_BY_INTERPRETER and 4 FRAME_OWNED_BY_CSTACK.
const frameOwnedByC = 3

// shim is the file of the code of 3.12 and later that leads from C to Python. A
// frame of it may be seen before it says whose it is.
const shim = "<shim>"

// frame reads one frame. Not ok: it is none, any more.
func (r *reader) frame(at uint64) (frame, bool) {
	f := frame{at: at, unit: -1}
	var err error
	if f.raw, err = r.mem.bytes(at, r.l.sizeofFrame); err != nil {
		return f, false
	}
	f.previous = wordAt(f.raw, r.l.framePrevious)
	if r.l.version.atLeast(12) && byteAt(f.raw, r.l.frameOwner) >= frameOwnedByC {
		return f, true
	}
	ref := r.untag(wordAt(f.raw, r.l.frameCode))
	if f.code = r.code(ref); f.code == nil {
		return f, false
	}
	if f.code.unreadable {
		return f, true
	}
	if f.code.file == shim {
		f.code = nil
		return f, true
	}
	if r.l.frameInstr == 0 {
		f.unit = int(intAt(f.raw, r.l.frameLasti)) // 3.10 counts in units
		f.line = lineOf310(f.code.lines, f.code.firstLine, f.unit)
		return f, true
	}
	instr := wordAt(f.raw, r.l.frameInstr)
	start := r.codeStart(ref, f.raw)
	if offset := instr - start; instr >= start && offset < f.code.size {
		f.unit = int(offset / 2)
		f.line = lineOf(f.code.lines, f.code.firstLine, f.unit)
	}
	return f, true
}

// codeStart is where the instructions lie that a frame runs. A free-threaded
// 3.14 has copies of them for each thread (struct _PyCodeArray: size, then
// pointers); the first is that in the code object.
func (r *reader) codeStart(code uint64, frame []byte) uint64 {
	if r.l.codeCopies == 0 || r.l.frameBytecode == 0 {
		return code + r.l.codeBytes
	}
	n := intAt(frame, r.l.frameBytecode)
	if n <= 0 {
		return code + r.l.codeBytes
	}
	copies, err := r.mem.word(code + r.l.codeCopies)
	if err != nil {
		return 0
	}
	head, err := r.mem.word(copies)
	if err != nil || uint64(n) >= head {
		return 0
	}
	start, _ := r.mem.word(copies + 8 + 8*uint64(n))
	return start
}

// untag takes the marks off a reference on a stack: since 3.14 its low two bits
// tell how it is counted (Include/internal/pycore_stackref.h).
func (r *reader) untag(ref uint64) uint64 {
	if r.l.version.atLeast(14) || r.l.version.FreeThreaded {
		return ref &^ 3
	}
	return ref
}

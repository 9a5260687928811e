package python

// code is what is read of a PyCodeObject, once for each.
type code struct {
	file, name string
	firstLine  int
	lines      []byte // co_linetable
	exceptions []byte // co_exceptiontable, since 3.11
	slots      uint64 // before the value stack
	size       uint64 // of the instructions, in bytes
	// bytecode is the address of the instructions.
	bytecode uint64
	// names is the address of co_names.
	names uint64
	// unreadable: it lies in a file (modules that are built in may), and was
	// not read; then nothing else is known of it.
	unreadable bool
}

// Most bytes of what belongs to a code object: a file of 100,000 lines has a
// table of 400 KB for its module.
const (
	maxTable = 1 << 20
	maxCode  = 1 << 24
)

// code reads a code object; nil if there is none at that address.
func (r *reader) code(at uint64) *code {
	if c, ok := r.codes[at]; ok {
		return c
	}
	c := r.readCode(at)
	r.codes[at] = c
	return c
}

func (r *reader) readCode(at uint64) *code {
	if at == 0 || at%8 != 0 {
		return nil
	}
	raw, err := r.mem.bytes(at, r.l.sizeofCode)
	if err != nil {
		if r.mem.spent() || !r.mayBeBuiltIn(at) {
			return nil
		}
		return &code{unreadable: true}
	}
	if wordAt(raw, r.l.objectType) != r.symbols.CodeType {
		return nil
	}
	c := &code{
		file:      r.text(wordAt(raw, r.l.codeFile), maxFile),
		name:      r.text(wordAt(raw, r.l.codeName), maxName),
		firstLine: int(intAt(raw, r.l.codeFirstLine)),
		lines:     r.byteString(wordAt(raw, r.l.codeLines)),
		names:     wordAt(raw, r.l.codeNames),
	}
	if r.l.codeQualName != 0 {
		if q := r.text(wordAt(raw, r.l.codeQualName), maxName); q != "" {
			c.name = q
		}
	}
	if r.l.codeExceptions == 0 { // 3.10: the instructions are an object
		c.bytecode = wordAt(raw, r.l.codeBytes) + r.l.bytesData
		return c
	}
	c.exceptions = r.byteString(wordAt(raw, r.l.codeExceptions))
	if n := intAt(raw, r.l.codeLocals); n >= 0 {
		c.slots = uint64(n)
	}
	c.bytecode = at + r.l.codeBytes
	if units := wordAt(raw, r.l.objectSize); units < maxCode/2 {
		c.size = 2 * units
	}
	return c
}

// mayBeBuiltIn says whether a code object may be one of those that 3.11 and 3.12
// have in their own data (deep-frozen modules), which may lie in the file.
func (r *reader) mayBeBuiltIn(at uint64) bool {
	const near = 64 << 20
	from := r.symbols.CodeType - near
	return r.l.version.atLeast(11) && !r.l.version.atLeast(13) && at-from < 2*near
}

// byteString reads a PyBytesObject; nil if it cannot be read.
func (r *reader) byteString(at uint64) []byte {
	if at == 0 {
		return nil
	}
	n, err := r.mem.word(at + r.l.objectSize)
	if err != nil || n == 0 || n > maxTable {
		return nil
	}
	b, err := r.mem.bytes(at+r.l.bytesData, n)
	if err != nil {
		return nil
	}
	return b
}

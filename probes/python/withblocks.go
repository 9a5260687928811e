package python

import (
	"encoding/binary"
	"path"
	"slices"
)

// blocks collects the locks whose `with` blocks a thread is in, from the
// innermost frame outwards.
type blocks struct {
	held []uint64
	// released are locks that a Condition.wait further in has given back
	// meanwhile; releasedAll: it is not known which.
	released    []uint64
	releasedAll bool
}

// Bounds of one frame: nested blocks are a few.
const (
	maxHandlers = 32
	maxBlocks   = 20 // CO_MAXBLOCKS of 3.10
)

// blocksOf adds the locks of one frame.
func (p *Interpreters) blocksOf(f *frame, b *blocks) {
	if f.code.unreadable || b.releasedAll {
		return
	}
	if isConditionWait(f.code) {
		self := p.firstLocal(f)
		if k := p.conditionLock(self); k != nil {
			b.released = append(b.released, k.at)
		} else {
			b.releasedAll = true
		}
		return
	}
	add := func(manager uint64) {
		k := p.lock(manager)
		if k == nil {
			k = p.conditionLock(manager)
		}
		if k != nil && !slices.Contains(b.released, k.at) && !slices.Contains(b.held, k.at) && !p.mayRelease(f.code) {
			b.held = append(b.held, k.at)
		}
	}
	if p.l.codeExceptions == 0 {
		p.blockStack(f, add)
		return
	}
	p.handlers(f, add)
}

// isConditionWait tells threading.Condition.wait, which gives the lock back
// while it sleeps.
func isConditionWait(c *code) bool {
	return (c.name == "Condition.wait" || c.name == "wait") && path.Base(c.file) == "threading.py"
}

// firstLocal is the first argument of a function.
func (p *Interpreters) firstLocal(f *frame) uint64 {
	at, err := p.mem.word(f.at + p.l.frameLocals)
	if err != nil {
		return 0
	}
	return p.untag(at)
}

// Instructions of a handler that ends a `with` block (Lib/opcode.py of each
// version): the first since 3.11, and the second.
type withOpcodes struct{ push, exit byte }

var withOpcodesOf = map[int]withOpcodes{
	11: {35, 49}, 12: {35, 49}, 13: {33, 44}, 14: {32, 43}, 15: {30, 41},
}

// maxNames is how many names of a function are looked at.
const maxNames = 256

// mayRelease says whether a function uses an attribute called release: it may
// have given back a lock in whose `with` block it is, to work without it and
// take it again. So it may if its names cannot be read.
func (r *reader) mayRelease(c *code) bool {
	if may, ok := r.release[c]; ok {
		return may
	}
	may := r.namesRelease(c.names)
	r.release[c] = may
	return may
}

func (r *reader) namesRelease(names uint64) bool {
	n, err := r.mem.word(names + r.l.objectSize)
	if err != nil || n > maxNames {
		return true
	}
	items, err := r.mem.bytes(names+r.l.tupleItems, 8*n)
	if err != nil {
		return true
	}
	for ; len(items) > 0; items = items[8:] {
		if s := r.text(wordAt(items, 0), maxName); s == "release" || s == "" {
			return true
		}
	}
	return false
}

// handlers goes from the instruction that runs to the handler of its
// exceptions, from there to the handler of that one, and so on outwards. Each
// that ends a `with` block finds the block's `__exit__` on the value stack.
func (p *Interpreters) handlers(f *frame, add func(manager uint64)) {
	opcodes, ok := withOpcodesOf[p.l.version.Minor]
	if !ok || f.unit < 0 {
		return
	}
	unit := f.unit
	for range maxHandlers {
		h, ok := handlerOf(f.code.exceptions, unit)
		if !ok || h.target == unit {
			return
		}
		unit = h.target
		if h.depth < 1 || uint64(h.target)*2+4 > f.code.size {
			continue
		}
		var code [4]byte
		if p.mem.read(f.code.bytecode+2*uint64(h.target), code[:]) != nil || code[0] != opcodes.push || code[2] != opcodes.exit {
			continue
		}
		top := f.at + p.l.frameLocals + 8*(f.code.slots+uint64(h.depth)-1)
		value, err := p.mem.word(top)
		if err != nil {
			continue
		}
		// 3.14 pushes the function and then the object itself; a bound method
		// in its stead if it was one, and then nothing.
		value = p.untag(value)
		switch {
		case !p.l.version.atLeast(14):
			value = p.boundTo(value)
		case value == 0:
			if value, err = p.mem.word(top - 8); err != nil {
				continue
			}
			value = p.boundTo(p.untag(value))
		}
		add(value)
	}
}

// PyTryBlock of 3.10: type, handler and level of the value stack.
const (
	blockBytes   = 12
	setupFinally = 122
	withExcept   = 49
)

// blockStack reads the blocks of a frame of 3.10. The handler of a `with` block
// begins with an instruction that calls its `__exit__`.
func (p *Interpreters) blockStack(f *frame, add func(manager uint64)) {
	n := int(intAt(f.raw, p.l.frameBlocks))
	stack := wordAt(f.raw, p.l.frameStack)
	if n <= 0 || n > maxBlocks || stack == 0 {
		return
	}
	for i := n - 1; i >= 0; i-- {
		at := p.l.frameBlockStack + uint64(i*blockBytes)
		kind, handler, level := intAt(f.raw, at), intAt(f.raw, at+4), intAt(f.raw, at+8)
		if kind != setupFinally || handler < 0 || level < 1 || level > 1<<16 {
			continue
		}
		var code [2]byte
		if p.mem.read(f.code.bytecode+2*uint64(handler), code[:]) != nil || code[0] != withExcept {
			continue
		}
		var value [8]byte
		if p.mem.read(stack+8*uint64(level-1), value[:]) != nil {
			continue
		}
		add(p.boundTo(binary.NativeEndian.Uint64(value[:])))
	}
}

// boundTo is the object that a bound method belongs to; 0 if it is none. Locks
// have built-in methods, a Condition has some of Python.
func (p *Interpreters) boundTo(method uint64) uint64 {
	if method == 0 || method%8 != 0 {
		return 0
	}
	raw, err := p.mem.bytes(method, p.l.methodSelf+8)
	if err != nil {
		return 0
	}
	if t := wordAt(raw, p.l.objectType); t == 0 || t != p.symbols.Builtin && t != p.symbols.Method {
		return 0
	}
	return wordAt(raw, p.l.methodSelf)
}

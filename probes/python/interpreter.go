package python

import (
	"errors"
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Symbols are the addresses of exported data of CPython in the target.
type Symbols struct {
	Runtime  uint64 // _PyRuntime
	CodeType uint64 // PyCode_Type: by it a code object is known
	// Builtin and Method are PyCFunction_Type and PyMethod_Type: what the
	// `__exit__` of a `with` block is. 0: not found, then no block is.
	Builtin, Method uint64
	// Head are the first bytes of _PyRuntime as they stand in the file, if they
	// are known: since 3.13 a description of the layout, which never changes
	// and whose page may never be written to.
	Head []byte
}

// Interpreters is what was read of CPython in one process.
type Interpreters struct {
	// Process is the evidence, without PID and TIDs, which only the caller
	// knows: the memory has IDs of the target's PID namespace.
	Process evidence.PythonProcess

	*reader
	gils   []gil
	idents map[uint64]int // pthread_self() to NSTID
	native map[int]bool   // NSTIDs
	// complete: these are all threads.
	complete bool
	// sentinels are the threads by the weak reference to the lock that their
	// end releases: 0 if it is not known which thread that is.
	sentinels map[uint64]int
	// inside are the threads in `with` blocks, by lock object; of every one
	// its words are in locks.
	inside map[uint64][]int
}

// reader reads structures of one layout.
type reader struct {
	mem     *memory
	l       layout
	symbols Symbols
	limits  Limits
	codes   map[uint64]*code
	release map[*code]bool // whether it may give locks back
	texts   map[uint64]string
	types   map[uint64]lockType
	objects map[uint64]*lock // nil: an object that is no lock
	words   map[uint64]*lock // by what their waiters sleep on
}

// maxInterpreters bounds the list of interpreters of a process.
const maxInterpreters = 64

// Read reads all interpreters of a process. version is what names of files say
// of it, for those that do not describe themselves. What could not be read is
// in Process.Unread.
func Read(m Memory, at Symbols, version Version, limits Limits) *Interpreters {
	r := &reader{
		mem: newMemory(m, limits), symbols: at, limits: limits,
		codes: map[uint64]*code{}, release: map[*code]bool{}, texts: map[uint64]string{}, types: map[uint64]lockType{},
		objects: map[uint64]*lock{}, words: map[uint64]*lock{},
	}
	p := &Interpreters{reader: r, idents: map[uint64]int{}, native: map[int]bool{}, sentinels: map[uint64]int{}, inside: map[uint64][]int{}}
	if err := r.findLayout(version); err != nil {
		p.Process.Version = version.String()
		if !version.known() {
			p.Process.Version = ""
		}
		p.Process.Unread = err.Error()
		return p
	}
	p.Process.Version, p.Process.FreeThreaded = r.l.version.String(), r.l.version.FreeThreaded
	p.readInterpreters()
	if r.mem.spent() {
		p.unread(errSpent.Error())
	}
	return p
}

// findLayout finds out how the structures of this CPython look.
func (r *reader) findLayout(version Version) error {
	if r.symbols.CodeType == 0 {
		return errors.New("the symbol PyCode_Type was not found")
	}
	var err error
	head := r.symbols.Head
	if head == nil {
		head = make([]byte, HeadBytes)
		if err = r.mem.read(r.symbols.Runtime, head); err != nil {
			return fmt.Errorf("the interpreter's state: %w", err)
		}
	}
	described, ok := describedVersion(head)
	switch {
	case ok && described.Minor >= 13:
		r.l, err = describedLayout(described, head)
	case !version.known():
		err = errors.New("no name of a file tells the version of CPython")
	default:
		if r.l, ok = layoutOf(version); !ok {
			err = fmt.Errorf("the layout of CPython %s is not known to whyhang", version)
		}
	}
	return err
}

// unread keeps the first reason.
func (p *Interpreters) unread(why string) {
	if p.Process.Unread == "" {
		p.Process.Unread = why
	}
}

// Done gives back the memory that the reading took. Call it when no more locks
// are asked for.
func (p *Interpreters) Done() { p.mem.release() }

// readInterpreters walks the list of interpreters, the newest first, and that
// of the threads of each.
func (p *Interpreters) readInterpreters() {
	head, err := p.mem.word(p.symbols.Runtime + p.l.runtimeInterpreters)
	if err != nil {
		p.unread("the list of interpreters: " + err.Error())
		return
	}
	if head == 0 {
		p.unread("no interpreter runs in it yet, or any more")
		return
	}
	var states []threadState
	for n, at := 0, head; at != 0 && n < maxInterpreters && !p.mem.spent(); n++ {
		p.readGIL(at)
		threads, more, err := p.threadStates(at, p.limits.Threads-len(states))
		states = append(states, threads...)
		if err != nil {
			p.unread("the list of threads: " + err.Error())
		} else if more {
			p.unread(fmt.Sprintf("more than %d threads: the rest was not read", p.limits.Threads))
		}
		if at, err = p.mem.word(at + p.l.interpreterNext); err != nil {
			p.unread("the list of interpreters: " + err.Error())
			break
		}
	}
	// The main interpreter is the last. A thread may have a state in each; but
	// up to 3.12 a state that another thread than its maker runs keeps the ID of
	// its maker: then whose it is is not known.
	for i := len(states) - 1; i >= 0; i-- {
		s := &states[i]
		if p.native[s.nstid] {
			if !p.l.version.atLeast(13) {
				s.nstid = 0
			}
			continue
		}
		p.idents[s.ident] = s.nstid
		p.native[s.nstid] = true
	}
	if len(states) == 0 {
		p.unread("no thread of the interpreter has an ID that could be read")
	}
	p.nameHolders(states)
	p.nameSentinels(states)
	p.complete = p.Process.Unread == ""
	for i := range states {
		if p.mem.spent() {
			return
		}
		t, inside := p.thread(&states[i])
		for _, object := range inside {
			p.inside[object] = append(p.inside[object], t.NSTID)
			t.Inside = append(t.Inside, hexAddr(object))
		}
		p.Process.Threads = append(p.Process.Threads, t)
	}
}

func hexAddr(addr uint64) string { return fmt.Sprintf("0x%x", addr) }

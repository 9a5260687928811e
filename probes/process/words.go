package process

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// wordsOf is what was read of one process's memory, for each of its sleepers.
type wordsOf struct {
	words []words
	maps  []mapping
	// inNS are the threads by their ID in the process's own PID namespace; nil
	// if they were not asked for.
	inNS map[int]int
	// python is what was read of its CPython; nil if it has none.
	python *evidence.PythonProcess
	// failed says why nothing was read at all; denied: for lack of rights.
	failed string
	denied bool
}

// words are what one thread sleeps on and what stands around it.
type words struct {
	word  *uint32
	mutex *evidence.MutexWords
	// local: only this process has the word's memory mapped.
	local bool
	// owner is who the memory names, as an ID of the target's namespace.
	owner *evidence.LockOwner
	// gone: no thread that may be the owner lives any more.
	gone bool
	// python is the lock in Python's terms.
	python *evidence.PythonLock
	// stack is the top of the thread's stack, for the names of its callers.
	stack  []byte
	unread string
}

// stackBytes at the stack pointer hold the return address into the function
// that waits: at +0 for mutexes of glibc 2.36, at +56 for rwlocks.
const stackBytes = 512

// words reads the words of all sleepers of one process.
func (r *Reader) words(p *evidence.Process, s sleepers, stacks bool) wordsOf {
	if len(s.waiting) == 0 && !(stacks && s.naps) {
		return wordsOf{}
	}
	leave, ok := r.enter("memory", p.PID)
	if !ok {
		return wordsOf{failed: stillInside}
	}
	defer leave()
	m, err := r.openMemory(p.PID, s.via)
	if err != nil {
		_, why := probes.Classify(err)
		return wordsOf{failed: why, denied: isDenied(err)}
	}
	defer m.close()
	w := wordsOf{words: make([]words, len(s.waiting)), maps: m.maps}
	living := living{r: r, p: p, s: &s}
	for i := range s.waiting {
		switch sl := &s.waiting[i]; {
		case sl.futex != nil && readsWord(sl.futex):
			w.words[i] = m.words(sl)
			living.check(m, &w.words[i], sl)
		case sl.blocked != nil:
			w.words[i].stack = m.stack(sl)
		}
	}
	w.inNS = living.inNS
	r.readPython(m, &w, p, &s, stacks)
	return w
}

// words reads the word of one sleeper and takes it for what it is.
func (m *memory) words(s *sleeper) words {
	var w words
	addr := s.call.Args[0]
	raw, err := m.readSome(addr, make([]byte, mutexBytes))
	if err == nil && len(raw) < 4 {
		err = errUnmapped
	}
	if err != nil {
		w.unread = whyUnread(err)
		return w
	}
	word := binary.NativeEndian.Uint32(raw)
	w.word = &word
	if mp := mappingOf(m.maps, addr); mp != nil {
		w.local = !mp.Shared
	}
	m.readOwner(&w, addr, raw, s.futex)
	w.stack = m.stack(s)
	return w
}

// stack is the top of a thread's stack; nil if it cannot be read. A stack is
// private memory of no file, except where a program gave it another.
func (m *memory) stack(s *sleeper) []byte {
	b, _ := m.readSome(s.call.SP, make([]byte, stackBytes))
	return b
}

func whyUnread(err error) string {
	if errors.Is(err, errUnmapped) || errors.Is(err, errOfFile) {
		return err.Error()
	}
	_, why := probes.Classify(err)
	return why
}

// A mutex that changes hands has no owner for a moment, while its word says
// locked: the new owner writes its name after it has the lock. Nobody is not
// the owner then, so it is read again.
const (
	ownerTries = 5
	ownerPause = 50 * time.Microsecond
)

// mutexAt reads the mutex whose first bytes are raw; nil if it is none.
func (m *memory) mutexAt(addr uint64, raw []byte, f *evidence.Futex) *evidence.MutexWords {
	for try := 1; len(raw) == mutexBytes; try++ {
		mutex, ok := parseMutex(raw, f)
		if !ok {
			return nil
		}
		if mutex.OwnerNSTID != 0 || try == ownerTries {
			return &mutex
		}
		time.Sleep(ownerPause)
		if m.read(addr, raw) != nil {
			return nil
		}
	}
	return nil
}

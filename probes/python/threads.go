package python

import "github.com/whyhang/whyhang/probes/evidence"

// threadState is what is read of a PyThreadState.
type threadState struct {
	at uint64
	// ident is pthread_self(), nstid gettid() of the thread.
	ident uint64
	nstid int
	frame uint64
	// sentinel is a weak reference to the lock that its end releases.
	sentinel uint64
}

// threadStates walks the list of threads of an interpreter, at most so many.
// A state that does not point back to its interpreter has been freed: the list
// ends there. more: there are others.
func (p *Interpreters) threadStates(interpreter uint64, most int) (states []threadState, more bool, err error) {
	at, err := p.mem.word(interpreter + p.l.interpreterThreads)
	if err != nil {
		return nil, false, err
	}
	seen := map[uint64]bool{}
	buf := make([]byte, p.l.sizeofThread)
	for at != 0 && !seen[at] {
		if len(seen) >= most {
			return states, true, nil
		}
		seen[at] = true
		if err := p.mem.read(at, buf); err != nil {
			return states, false, err
		}
		if wordAt(buf, p.l.threadInterpreter) != interpreter {
			return states, false, nil
		}
		s := threadState{at: at, ident: wordAt(buf, p.l.threadID)}
		if p.l.threadNativeID != 0 {
			s.nstid = tidOf(wordAt(buf, p.l.threadNativeID))
		} else {
			s.nstid, _ = p.tidOfTCB(s.ident)
		}
		if p.l.threadCFrame != 0 {
			// It lies on the thread's own stack.
			s.frame, _ = p.mem.word(wordAt(buf, p.l.threadCFrame) + p.l.cframeFrame)
		} else {
			s.frame = wordAt(buf, p.l.threadFrame)
		}
		if p.l.threadSentinel != 0 {
			s.sentinel = wordAt(buf, p.l.threadSentinel)
		}
		if s.nstid != 0 { // else no thread has begun to use it
			states = append(states, s)
		}
		at = wordAt(buf, p.l.threadNext)
	}
	return states, false, nil
}

// maxTID is the largest thread ID of 64-bit Linux (PID_MAX_LIMIT).
const maxTID = 1 << 22

// tidOf takes a word for a thread ID; 0 if it cannot be one.
func tidOf(word uint64) int {
	if word > maxTID {
		return 0
	}
	return int(word)
}

// thread reads the frames of a thread, and the lock objects whose `with` blocks
// it is in.
func (p *Interpreters) thread(s *threadState) (evidence.PythonThread, []uint64) {
	t := evidence.PythonThread{NSTID: s.nstid}
	var b blocks
	at := s.frame
	for n := 0; at != 0; n++ {
		if n >= p.limits.Frames || p.mem.spent() {
			t.Truncated = true
			break
		}
		f, ok := p.frame(at)
		if !ok {
			t.Truncated = true
			break
		}
		if f.code != nil {
			t.Frames = append(t.Frames, evidence.PythonFrame{File: f.code.file, Function: f.code.name, Line: f.line})
			p.blocksOf(&f, &b)
		}
		at = f.previous
	}
	return t, b.held
}

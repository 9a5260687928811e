package process

import (
	"encoding/binary"
	"runtime"

	"github.com/whyhang/whyhang/probes/evidence"
)

// muslThread is where musl's struct pthread has its members (pthread_impl.h,
// musl 1.2; LP64): a pointer to itself at +0, the neighbours in the ring of all
// threads, the TID, and the state that pthread_join waits on.
type muslThread struct{ prev, next, tid, state int }

var muslThreads = map[string]muslThread{
	"amd64": {prev: 16, next: 24, tid: 48, state: 56},
	"arm64": {prev: 8, next: 16, tid: 32, state: 40},
}

// isMuslJoinWait tells the wait of musl's pthread_join: private and for ever,
// for the state of a thread to change.
func isMuslJoinWait(f *evidence.Futex, word uint32) bool {
	return f.Call == "futex" && f.Op == futexWait|futexPrivate && !f.Timed && word == f.Val &&
		(word == joinExiting || word == joinJoinable)
}

// parseMuslThread takes bytes for a musl struct pthread at addr, up to its
// state.
func parseMuslThread(b []byte, addr uint64, at muslThread) (prev, next uint64, tid int, ok bool) {
	if len(b) < at.state+4 || binary.NativeEndian.Uint64(b) != addr {
		return 0, 0, 0, false
	}
	id := binary.NativeEndian.Uint32(b[at.tid:])
	return binary.NativeEndian.Uint64(b[at.prev:]), binary.NativeEndian.Uint64(b[at.next:]), int(id), id > 0 && id <= maxTID
}

// muslJoined is the thread whose state the word at addr is; nil if it is none.
func (m *memory) muslJoined(addr uint64, f *evidence.Futex) *evidence.LockOwner {
	at, known := muslThreads[runtime.GOARCH]
	if !known || !isMuslJoinWait(f, f.Val) || addr < uint64(at.state) {
		return nil
	}
	thread := addr - uint64(at.state)
	b := make([]byte, at.state+4)
	if m.read(thread, b) != nil {
		return nil
	}
	prev, next, tid, ok := parseMuslThread(b, thread, at)
	if !ok {
		return nil
	}
	// The neighbours point back: this is a thread and nothing that looks alike.
	back, err1 := m.uint64(next + uint64(at.prev))
	forth, err2 := m.uint64(prev + uint64(at.next))
	if err1 != nil || err2 != nil || back != thread || forth != thread {
		return nil
	}
	// The library ends this wait, not the kernel.
	return &evidence.LockOwner{Kind: evidence.KindThread, NSTID: tid, Proof: evidence.ProofCode}
}

package process

import (
	"encoding/binary"
	"runtime"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Where glibc's struct pthread has the thread's TID, on which pthread_join
// waits up to glibc 2.42 for the kernel to clear it. In front of it stands the
// structure's place in the list of all threads, two pointers. Measured on both
// architectures; +720 still holds in glibc 2.43.
const (
	tidOffsetAMD64 = 720
	tidOffsetARM64 = 208
	// joinStateReach is how far behind the TID the word may be on which glibc
	// joins from 2.43 on (measured: +856, x86-64).
	joinStateReach = 2048
	// threadAlign is what a struct pthread is aligned to, in glibc.
	threadAlign = 64
)

// What the word of glibc 2.43 holds while the thread lives (nptl/descr.h:
// joinstate); musl has the same numbers (pthread_impl.h: DT_EXITING,
// DT_JOINABLE).
const (
	joinExiting  = 1
	joinJoinable = 2
)

// isJoinWait tells the wait of pthread_join: shared, with the real-time clock
// and for ever, for the word to change from the TID it holds, or from what
// stands for a thread that lives.
func isJoinWait(f *evidence.Futex, word uint32) bool {
	return f.Call == "futex" && f.Op == futexWaitBitset|futexRealtime && !f.Timed &&
		word == f.Val && word > 0 && word <= maxTID
}

// joined is the thread that is waited for at addr; nil if it is none.
func (m *memory) joined(addr uint64, word uint32) *evidence.LockOwner {
	o := &evidence.LockOwner{Kind: evidence.KindThread, NSTID: int(word), Proof: evidence.ProofLayout}
	switch {
	case m.isTIDOfThread(addr):
		o.Proof = evidence.ProofKernel
	case word == joinExiting || word == joinJoinable:
		if o.NSTID = m.threadAbove(addr); o.NSTID == 0 {
			return nil
		}
		o.Proof = evidence.ProofKernel // which clears this word when the thread ends
	}
	return o
}

// isTIDOfThread checks that a word is the TID in a struct pthread of glibc.
func (m *memory) isTIDOfThread(addr uint64) bool {
	if runtime.GOARCH == "amd64" {
		return addr > tidOffsetAMD64 && m.isThread(addr-tidOffsetAMD64)
	}
	return m.isListed(addr - 16)
}

// isThread checks the first and third members of a struct pthread, which point
// to the structure itself (tcb and self, x86-64).
func (m *memory) isThread(thread uint64) bool {
	var b [24]byte
	return m.read(thread, b[:]) == nil && pointsToItself(b[:], thread)
}

func pointsToItself(b []byte, addr uint64) bool {
	return len(b) >= 24 && binary.NativeEndian.Uint64(b) == addr && binary.NativeEndian.Uint64(b[16:]) == addr
}

// isListed checks that two pointers at addr are those of a member of a list
// that runs both ways (glibc's list_t: next, prev): the neighbours point back.
func (m *memory) isListed(addr uint64) bool {
	next, err1 := m.uint64(addr)
	prev, err2 := m.uint64(addr + 8)
	if err1 != nil || err2 != nil {
		return false
	}
	back, err1 := m.uint64(next + 8)
	forth, err2 := m.uint64(prev)
	return err1 == nil && err2 == nil && back == addr && forth == addr && next != addr
}

// threadAbove finds the struct pthread of glibc that the word at addr is in,
// and the TID there; 0 if it is in none.
func (m *memory) threadAbove(addr uint64) int {
	tidOffset := uint64(tidOffsetAMD64)
	if runtime.GOARCH != "amd64" {
		tidOffset = tidOffsetARM64
	}
	if addr < tidOffset+joinStateReach {
		return 0
	}
	for thread := addr &^ (threadAlign - 1); thread+tidOffset+joinStateReach > addr; thread -= threadAlign {
		if thread+tidOffset >= addr {
			continue
		}
		if runtime.GOARCH == "amd64" && !m.isThread(thread) || !m.isListed(thread+tidOffset-16) {
			continue
		}
		var b [4]byte
		if m.read(thread+tidOffset, b[:]) != nil {
			return 0
		}
		if tid := binary.NativeEndian.Uint32(b[:]); tid <= maxTID {
			return int(tid)
		}
		return 0
	}
	return 0
}

package process

import (
	"runtime"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Offset of the TID in glibc's struct pthread, where pthread_join waits for
// the kernel to clear it (up to glibc 2.42). Measured on both architectures.
const (
	tidOffsetAMD64 = 720
	// arm64 has it at +208, without a member that points to itself, so that
	// nothing can be checked.
)

// isJoinWait tells the wait of pthread_join: shared, with the real-time clock
// and for ever, for the word to change from the TID it holds.
func isJoinWait(f *evidence.Futex, word uint32) bool {
	return f.Call == "futex" && f.Op == futexWaitBitset|futexRealtime && !f.Timed &&
		word == f.Val && word > 0 && word <= maxTID
}

// isTIDOfThread checks that a word is the TID in a struct pthread: its first
// and third members point to the structure itself (tcb and self, x86-64).
func (m *memory) isTIDOfThread(addr uint64) bool {
	if runtime.GOARCH != "amd64" || addr < tidOffsetAMD64 {
		return false
	}
	thread := addr - tidOffsetAMD64
	tcb, err1 := m.uint64(thread)
	self, err2 := m.uint64(thread + 16)
	return err1 == nil && err2 == nil && tcb == thread && self == thread
}

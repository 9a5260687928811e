package process

import (
	"runtime"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Numbers of the futex calls: futex(2) differs by architecture, the newer ones
// are the same everywhere (include/uapi/asm-generic/unistd.h).
const (
	sysFutexAMD64 = 202
	sysFutexARM64 = 98
	sysFutexWaitV = 449 // futex_waitv, Linux 5.16
	sysFutexWait  = 455 // futex_wait, Linux 6.7
)

// Futex operations and flags (include/uapi/linux/futex.h).
const (
	futexWait       = 0
	futexLockPI     = 6
	futexWaitBitset = 9
	futexLockPI2    = 13

	futexPrivate  = 0x80
	futexRealtime = 0x100
	futexCommand  = 0x7f

	// Flags of futex_wait(): the size in the lowest two bits (2 is 32 bit).
	futex2SizeMask = 3
	futex2SizeU32  = 2
)

// sysFutex is the number of futex(2) on this architecture. A process of a
// 32-bit ABI has other numbers, and is not recognised.
func sysFutex(arch string) uint64 {
	if arch == "arm64" {
		return sysFutexARM64
	}
	return sysFutexAMD64
}

// futexOf reads a system call as a futex wait; false if it is none.
func futexOf(c call) (evidence.Futex, bool) {
	switch c.Number {
	case sysFutex(runtime.GOARCH):
		op := uint32(c.Args[1])
		return evidence.Futex{
			Call: "futex", Addr: hexAddr(c.Args[0]),
			Op: op, Command: op & futexCommand, Private: op&futexPrivate != 0,
			Val: uint32(c.Args[2]), // sign-extended by some libraries
			// A null timeout means for ever, for every operation.
			Timed: c.Args[3] != 0,
		}, true
	case sysFutexWait: // addr, val, mask, flags, timeout, clock
		flags := uint32(c.Args[3])
		return evidence.Futex{
			Call: "futex_wait", Addr: hexAddr(c.Args[0]),
			Op: flags, Command: futexWaitBitset, Private: flags&futexPrivate != 0,
			Val: uint32(c.Args[1]), Timed: c.Args[4] != 0,
		}, true
	case sysFutexWaitV: // waiters, count, flags, timeout, clock
		return evidence.Futex{Call: "futex_waitv", Addr: hexAddr(c.Args[0]), Timed: c.Args[3] != 0}, true
	}
	return evidence.Futex{}, false
}

// readsWord says whether the word of a wait is worth reading: a wait without a
// timeout, of an operation whose meaning is known.
func readsWord(f *evidence.Futex) bool {
	if f.Timed {
		return false
	}
	switch f.Call {
	case "futex":
		return f.Command == futexWait || f.Command == futexWaitBitset || f.Command == futexLockPI || f.Command == futexLockPI2
	case "futex_wait":
		return f.Op&futex2SizeMask == futex2SizeU32
	}
	return false
}

package python

import (
	"encoding/binary"
	"runtime"
)

// Where glibc's struct pthread holds the TID: at +720 on x86-64, +208 on
// aarch64, the same from glibc 2.17 to 2.42 (nptl/descr.h). pthread_self() is
// its address. musl has it elsewhere: its threads are not found for 3.10.
const (
	tidInTCBAMD64 = 720
	tidInTCBARM64 = 208
)

// tidOfTCB reads the TID of the thread that pthread_self() names; 0 if there is
// no such structure. On x86-64 it begins with a pointer to itself, and has
// another at +16. gone: the thread has ended. The kernel, and fork in a child,
// set the TID to 0 then, and the structure may be given back.
func (r *reader) tidOfTCB(ident uint64) (id int, gone bool) {
	if ident == 0 || ident%16 != 0 {
		return 0, false
	}
	at := uint64(tidInTCBAMD64)
	if runtime.GOARCH == "arm64" {
		at = tidInTCBARM64
	}
	var head [24]byte
	if err := r.mem.readNow(ident, head[:]); err != nil {
		return 0, !r.mem.spent()
	}
	if runtime.GOARCH == "amd64" && (wordAt(head[:], 0) != ident || wordAt(head[:], 16) != ident) {
		return 0, false // musl's, or another thing by now
	}
	var tid [4]byte
	if err := r.mem.readNow(ident+at, tid[:]); err != nil {
		return 0, false
	}
	word := binary.NativeEndian.Uint32(tid[:])
	return tidOf(uint64(word)), word == 0
}

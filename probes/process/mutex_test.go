package process

import (
	"encoding/binary"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// mutexMemory lays out a glibc mutex.
func mutexMemory(lock, count, owner, nusers, kind uint32, list uint64) []byte {
	b := make([]byte, mutexBytes)
	for i, v := range []uint32{lock, count, owner, nusers, kind} {
		binary.NativeEndian.PutUint32(b[4*i:], v)
	}
	binary.NativeEndian.PutUint64(b[24:], list)
	return b
}

func TestParseMutex(t *testing.T) {
	private := &evidence.Futex{Call: "futex", Private: true, Val: 2}
	shared := &evidence.Futex{Call: "futex", Val: 2}
	for _, tc := range []struct {
		name string
		b    []byte
		f    *evidence.Futex
		want bool
	}{
		{"normal", mutexMemory(2, 0, 4242, 1, 0, 0), private, true},
		{"normal, set explicitly", mutexMemory(2, 0, 4242, 1, 0x200, 0), private, true},
		{"recursive", mutexMemory(2, 3, 4242, 1, 1, 0), private, true},
		{"errorcheck", mutexMemory(2, 0, 4242, 1, 2, 0), private, true},
		{"adaptive", mutexMemory(2, 0, 4242, 1, 3, 0), private, true},
		{"changing hands", mutexMemory(2, 0, 0, 1, 0, 0), private, true},
		{"process-shared", mutexMemory(2, 0, 4242, 1, 0x80, 0), shared, true},
		{"shared kind, private wait", mutexMemory(2, 0, 4242, 1, 0x80, 0), private, false},
		{"private kind, shared wait", mutexMemory(2, 0, 4242, 1, 0, 0), shared, false},
		{"recursive, held no times", mutexMemory(2, 0, 4242, 1, 1, 0), private, false},
		{"normal with a count", mutexMemory(2, 1, 4242, 1, 0, 0), private, false},
		{"robust", mutexMemory(2, 0, 4242, 1, 0x90, 0), shared, false},
		{"priority inheritance", mutexMemory(2, 0, 4242, 1, 0x20, 0), private, false},
		{"no users", mutexMemory(2, 0, 4242, 0, 0, 0), private, false},
		{"two million users", mutexMemory(2, 0, 4242, 2_000_000, 0, 0), private, false},
		{"owner that cannot be", mutexMemory(2, 0, 1<<23, 1, 0, 0), private, false},
		{"in a robust list", mutexMemory(2, 0, 4242, 1, 0, 0x7f00), private, false},
		{"not contended", mutexMemory(1, 0, 4242, 1, 0, 0), private, false},
		{"stdio lock: a pointer where the owner is", mutexMemory(2, 1, 0xf7d01740, 0x7fff, 0, 0), private, false},
		{"at the end of a mapping", mutexMemory(2, 0, 4242, 1, 0, 0)[:20], private, false},
	} {
		if _, ok := parseMutex(tc.b, tc.f); ok != tc.want {
			t.Errorf("%s: %v", tc.name, ok)
		}
	}
}

func FuzzParseMutex(f *testing.F) {
	f.Add(mutexMemory(2, 0, 4242, 1, 0, 0), true)
	f.Add([]byte{2}, false)
	f.Fuzz(func(t *testing.T, b []byte, private bool) {
		m, ok := parseMutex(b, &evidence.Futex{Private: private, Val: 2})
		if ok && (m.Lock != 2 || m.OwnerNSTID < 0 || m.OwnerNSTID > maxTID || !m.ListZero) {
			t.Fatalf("accepted %+v", m)
		}
	})
}

func TestIsJoinWait(t *testing.T) {
	join := evidence.Futex{Call: "futex", Op: 0x109, Command: 9, Val: 4242}
	if !isJoinWait(&join, 4242) {
		t.Error("not a join")
	}
	for _, tc := range []struct {
		name string
		f    evidence.Futex
		word uint32
	}{
		{"thread that has ended", join, 0},
		{"other word", join, 4243},
		{"condition", evidence.Futex{Call: "futex", Op: 0x189, Command: 9, Private: true, Val: 4242}, 4242},
		{"timed", evidence.Futex{Call: "futex", Op: 0x109, Command: 9, Val: 4242, Timed: true}, 4242},
		{"no thread ID", evidence.Futex{Call: "futex", Op: 0x109, Command: 9, Val: 1 << 30}, 1 << 30},
	} {
		if isJoinWait(&tc.f, tc.word) {
			t.Errorf("%s: taken for a join", tc.name)
		}
	}
}

package process

import (
	"encoding/binary"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// memoryOf lays out 32-bit words.
func memoryOf(size int, words map[int]uint32) []byte {
	b := make([]byte, size)
	for at, v := range words {
		binary.NativeEndian.PutUint32(b[at:], v)
	}
	return b
}

func TestParseRobust(t *testing.T) {
	shared := &evidence.Futex{Call: "futex", Val: 0x80001092}
	held := func(change map[int]uint32) []byte {
		w := map[int]uint32{0: 0x80001092, 4: 1, 8: 0x1092, 12: 1, 16: 0x90, 24: 0x40, 32: 0x40}
		for at, v := range change {
			w[at] = v
		}
		return memoryOf(mutexBytes, w)
	}
	for _, tc := range []struct {
		name        string
		b           []byte
		owner       int
		settled, ok bool
	}{
		{"held", held(nil), 0x1092, true, true},
		{"recursive, held twice", held(map[int]uint32{4: 2, 16: 0x91}), 0x1092, true, true},
		{"adaptive", held(map[int]uint32{16: 0x93}), 0x1092, true, true},
		{"taken from an owner that ended", held(map[int]uint32{8: inconsistent}), 0x1092, true, true},
		{"owner ended just now", held(map[int]uint32{0: 0xc0000000}), 0, false, true},
		{"changing hands: old name behind", held(map[int]uint32{8: 0x1093}), 0x1092, false, true},
		{"changing hands: no name behind", held(map[int]uint32{8: 0}), 0x1092, false, true},
		{"changing hands: not in the list yet", held(map[int]uint32{24: 0, 32: 0}), 0x1092, false, true},
		{"nobody marked as waiting", held(map[int]uint32{0: 0x1092}), 0x1092, false, true},
		{"with priority inheritance", held(map[int]uint32{16: 0xb0}), 0, false, false},
		{"not robust", held(map[int]uint32{16: 0x80}), 0, false, false},
		{"std::future", held(map[int]uint32{0: 0x80000000, 8: 0, 16: 0}), 0, false, false},
		{"no TID", held(map[int]uint32{0: 0xbfffffff, 8: 0x3fffffff}), 0, false, false},
		{"cut off", held(nil)[:36], 0, false, false},
	} {
		m, settled, ok := parseRobust(tc.b, shared)
		if settled != tc.settled || ok != tc.ok || ok && m.OwnerNSTID != tc.owner {
			t.Errorf("%s: %+v, settled %v, %v", tc.name, m, settled, ok)
		}
	}
	if _, _, ok := parseRobust(held(nil), &evidence.Futex{Private: true}); ok {
		t.Error("a private wait is none for a robust mutex")
	}
}

func TestParseRWLock(t *testing.T) {
	// A writer has it (readers: write phase 1, write-locked 2), a reader waits.
	byReader := map[int]uint32{0: 3 | 1<<3, 8: 3, 24: 4242}
	byWriter := map[int]uint32{0: 3, 4: 1, 12: 3, 24: 4242}
	with := func(m map[int]uint32, at int, v uint32) []byte {
		b := memoryOf(rwlockBytes, m)
		binary.NativeEndian.PutUint32(b[at:], v)
		return b
	}
	for _, tc := range []struct {
		name     string
		b        []byte
		offset   int
		private  bool
		writer   int
		free, ok bool
	}{
		{"reader", memoryOf(rwlockBytes, byReader), rwlockPhase, true, 4242, false, true},
		{"writer", memoryOf(rwlockBytes, byWriter), rwlockWriters, true, 4242, false, true},
		{"writer, process-shared", with(byWriter, 28, 1), rwlockWriters, false, 4242, false, true},
		{"writers preferred", with(byWriter, 48, 2), rwlockWriters, true, 4242, false, true},
		{"process-shared, private wait", with(byWriter, 28, 1), rwlockWriters, true, 0, false, false},
		{"changing hands", with(byWriter, 24, 0), rwlockWriters, true, 0, false, true},
		{"behind a writer that waits for two readers", memoryOf(rwlockBytes, map[int]uint32{0: 2 | 2<<3, 4: 1, 8: 2, 12: 3}), rwlockWriters, true, 0, true, true},
		{"the other word", memoryOf(rwlockBytes, byReader), rwlockWriters, true, 0, false, false},
		{"writer in a reading phase", with(byReader, 0, 1<<3), rwlockPhase, true, 0, false, false},
		{"something between", with(byReader, 16, 1), rwlockPhase, true, 0, false, false},
		{"something behind", with(byReader, 44, 1), rwlockPhase, true, 0, false, false},
		{"no TID", with(byReader, 24, 1<<23), rwlockPhase, true, 0, false, false},
		{"unknown flags", with(byReader, 48, 9), rwlockPhase, true, 0, false, false},
		{"cut off", memoryOf(rwlockBytes, byReader)[:52], rwlockPhase, true, 0, false, false},
	} {
		writer, free, ok := parseRWLock(tc.b, tc.offset, tc.private)
		if writer != tc.writer || free != tc.free || ok != tc.ok {
			t.Errorf("%s: %d, free %v, %v", tc.name, writer, free, ok)
		}
	}
}

func TestParseMuslMutex(t *testing.T) {
	private, shared := &evidence.Futex{Private: true}, &evidence.Futex{}
	for _, tc := range []struct {
		name                string
		kind, lock, waiters uint32
		f                   *evidence.Futex
		owner               int
		ok                  bool
	}{
		{"recursive", 1, 0x80001092, 1, private, 0x1092, true},
		{"errorcheck", 2, 0x80001092, 3, private, 0x1092, true},
		{"robust", 4, 0x80001092, 1, private, 0x1092, true},
		{"process-shared", 0x81, 0x80001092, 1, shared, 0x1092, true},
		{"owner ended", 4, 0xc0000000, 1, private, 0, true},
		{"changing hands", 1, 0x1092, 1, private, 0, true},
		{"normal: EBUSY is no TID", 0, 0x80000010, 1, private, 0, false},
		{"process-shared, private wait", 0x81, 0x80001092, 1, private, 0, false},
		{"nobody waits", 1, 0x80001092, 0, private, 0, false},
		{"no type", 3, 0x80001092, 1, private, 0, false},
		{"glibc's kind", 0x200, 0x80001092, 1, private, 0, false},
	} {
		owner, ok := parseMuslMutex(memoryOf(muslBytes, map[int]uint32{0: tc.kind, 4: tc.lock, 8: tc.waiters}), tc.f)
		if owner != tc.owner || ok != tc.ok {
			t.Errorf("%s: %d, %v", tc.name, owner, ok)
		}
	}
}

func TestInheritOwner(t *testing.T) {
	for word, want := range map[uint32]int{0x80001092: 0x1092, 0x1092: 0x1092, 0xc0001092: 0x1092, 0x80000000: 0} {
		if o := inheritOwner(0x1000, word); o == nil || o.NSTID != want || o.Proof != evidence.ProofKernel {
			t.Errorf("%#x: %+v", word, o)
		}
	}
	if o := inheritOwner(0x1000, 0xbfffffff); o != nil {
		t.Errorf("no TID: %+v", o)
	}
}

func TestStrengthen(t *testing.T) {
	for _, tc := range []struct {
		kind   evidence.LockKind
		caller string
		inLibc bool
		want   evidence.OwnerProof
	}{
		{evidence.KindMutex, "pthread_mutex_lock", true, evidence.ProofCode},
		{evidence.KindMutex, "pthread_cond_timedwait", true, evidence.ProofCode},
		{evidence.KindMutex, "pthread_mutex_lock", false, evidence.ProofCode},
		{evidence.KindMutex, "", true, evidence.ProofLayout}, // stdio's locks look alike
		{evidence.KindMutex, "sem_wait", true, evidence.ProofLayout},
		{evidence.KindMutex, syscallFunction, false, evidence.ProofLayout},
		{evidence.KindRobustMutex, "", true, evidence.ProofCode},
		{evidence.KindRobustMutex, syscallFunction, false, evidence.ProofLayout},
		{evidence.KindRobustMutex, "__pthread_mutex_lock_full", false, evidence.ProofCode}, // static
		{evidence.KindRWLock, "pthread_rwlock_wrlock", true, evidence.ProofCode},
		{evidence.KindRWLock, "pthread_cond_wait", true, evidence.ProofLayout},
		{evidence.KindThread, "pthread_join", true, evidence.ProofCode},
		{evidence.KindThread, "", true, evidence.ProofLayout},
	} {
		o := evidence.LockOwner{Kind: tc.kind, Proof: evidence.ProofLayout}
		if strengthen(&o, nil, tc.caller, tc.inLibc); o.Proof != tc.want {
			t.Errorf("%s in %q (libc %v): %s, want %s", tc.kind, tc.caller, tc.inLibc, o.Proof, tc.want)
		}
	}
}

// Whatever the memory holds, an owner is a possible TID or nobody.
func FuzzOwners(f *testing.F) {
	f.Add(memoryOf(mutexBytes, map[int]uint32{0: 0x80001092, 4: 1, 8: 0x1092, 12: 1, 16: 0x90, 24: 1, 32: 1}), false, uint64(0))
	f.Add(memoryOf(rwlockBytes, map[int]uint32{0: 3, 8: 3, 24: 4242}), true, uint64(1))
	f.Add(memoryOf(muslBytes, map[int]uint32{0: 1, 4: 0x80001092, 8: 1}), true, uint64(0))
	f.Add(memoryOf(60, map[int]uint32{0: 0x1000, 48: 7, 56: 2}), true, uint64(0x1000))
	f.Fuzz(func(t *testing.T, b []byte, private bool, addr uint64) {
		fx := &evidence.Futex{Call: "futex", Private: private}
		if m, _, ok := parseRobust(b, fx); ok && (m.OwnerNSTID < 0 || m.OwnerNSTID > maxTID) {
			t.Fatalf("robust: %+v", m)
		}
		for _, offset := range []int{rwlockPhase, rwlockWriters, 0} {
			if tid, free, ok := parseRWLock(b, offset, private); ok && (tid < 0 || tid > maxTID || free && tid != 0) {
				t.Fatalf("rwlock: %d", tid)
			}
		}
		if tid, ok := parseMuslMutex(b, fx); ok && (tid < 0 || tid > maxTID) {
			t.Fatalf("musl: %d", tid)
		}
		for _, at := range muslThreads {
			if _, _, tid, ok := parseMuslThread(b, addr, at); ok && (tid < 1 || tid > maxTID) {
				t.Fatalf("musl thread: %d", tid)
			}
		}
		if len(b) >= 4 {
			if o := inheritOwner(addr, binary.NativeEndian.Uint32(b)); o != nil && (o.NSTID < 0 || o.NSTID > maxTID) {
				t.Fatalf("priority inheritance: %+v", o)
			}
		}
	})
}

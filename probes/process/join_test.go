package process

import (
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// memoryFile is memory of one anonymous mapping that holds the given words.
func memoryFile(t *testing.T, from, to uint64, words map[uint64]uint64) *memory {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "mem")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(to)); err != nil {
		t.Fatal(err)
	}
	for at, v := range words {
		var b [8]byte
		binary.NativeEndian.PutUint64(b[:], v)
		if _, err := f.WriteAt(b[:], int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	return &memory{mem: int(f.Fd()), pagemap: -1, pageSize: 4096, maps: []mapping{{Start: from, End: to, Read: true, Write: true}}}
}

// A struct pthread of glibc 2.43 as measured on x86-64: itself at +0 and +16,
// its place in the list of threads at +704, the TID at +720, and the word that
// pthread_join waits on at +1576.
func TestJoinOfGlibc243(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the layout was measured on x86-64")
	}
	const thread, other, state = 0x21000 + 0x6c0, 0x30000, 1576
	layout := func(change map[uint64]uint64) *memory {
		words := map[uint64]uint64{
			thread: thread, thread + 16: thread, thread + 704: other, thread + 712: other, thread + 720: 4242,
			thread + state: joinJoinable, other: thread + 704, other + 8: thread + 704,
		}
		for at, v := range change {
			words[at] = v
		}
		return memoryFile(t, 0x20000, 0x40000, words)
	}
	for _, word := range []uint32{joinJoinable, joinExiting} {
		o := layout(nil).joined(thread+state, word)
		if o == nil || o.Kind != evidence.KindThread || o.NSTID != 4242 || o.Proof != evidence.ProofKernel {
			t.Errorf("word %d: %+v", word, o)
		}
	}
	for name, change := range map[string]map[uint64]uint64{
		"not itself":          {thread: thread + 8},
		"no third member":     {thread + 16: 0},
		"not in a list":       {other + 8: 0},
		"list that leads out": {thread + 704: 1 << 50},
		"no TID":              {thread + 720: 1 << 30},
	} {
		if o := layout(change).joined(thread+state, joinJoinable); o != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
	// Up to glibc 2.42 the word is the TID, also where it happens to be 2: in a
	// PID namespace.
	m := layout(map[uint64]uint64{thread + 720: 2})
	if o := m.joined(thread+720, 2); o == nil || o.NSTID != 2 || o.Proof != evidence.ProofKernel {
		t.Errorf("thread 2 of a namespace: %+v", o)
	}
	// So is 3, on which shared rwlocks wait.
	f := &evidence.Futex{Call: "futex", Op: 0x109, Command: 9, Val: 3}
	word := uint32(3)
	w := words{word: &word}
	layout(map[uint64]uint64{thread + 720: 3}).readOwner(&w, thread+720, nil, f)
	if w.owner == nil || w.owner.NSTID != 3 || w.owner.Kind != evidence.KindThread {
		t.Errorf("thread 3 of a namespace: %+v", w.owner)
	}
	w = words{word: &word}
	layout(map[uint64]uint64{thread + 1600: 3}).readOwner(&w, thread+1600, nil, f)
	if w.owner != nil {
		t.Errorf("a 3 that is neither: %+v", w.owner)
	}
	// Any other word that looks like a TID is only that.
	if o := m.joined(thread+1600, 4242); o == nil || o.NSTID != 4242 || o.Proof != evidence.ProofLayout {
		t.Errorf("plain memory: %+v", o)
	}
}

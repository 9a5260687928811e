package process

import (
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// Only memory whose pages cannot come from a file server may be read.
func TestWaitsReadOnlySafeMemory(t *testing.T) {
	s := scenario.Start(t, "lock_places", t.TempDir())
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	byAddr := map[string]*evidence.Futex{}
	for _, w := range waits {
		byAddr[w.Futex.Addr] = w.Futex
	}
	want := map[string]struct {
		word   uint32
		unread string
	}{
		"bss": {}, "data": {word: 8}, "stack": {word: 10}, "heap": {}, "anonymous": {}, "anonymous-shared": {}, "memfd": {},
		"file-written": {word: 9}, "file-private": {unread: errOfFile.Error()}, "file-shared": {unread: errOfFile.Error()},
	}
	places := strings.Fields(s.Ready)
	if len(places) != len(want) || len(waits) != len(want) {
		t.Fatalf("%d places, %d waits, want %d", len(places), len(waits), len(want))
	}
	for _, place := range places {
		name, addr, _ := strings.Cut(place, "=")
		f, w := byAddr[addr], want[name]
		switch {
		case f == nil:
			t.Errorf("%s: no wait at %s", name, addr)
		case f.Unread != w.unread:
			t.Errorf("%s: unread %q, want %q", name, f.Unread, w.unread)
		case w.unread != "":
			if f.Word != nil {
				t.Errorf("%s: word %d was read", name, *f.Word)
			}
		case f.Word == nil || *f.Word != w.word && w.word != 0:
			t.Errorf("%s: word %v, want %d", name, f.Word, w.word)
		}
		if f != nil && (f.Mutex != nil || f.Owner != nil) {
			t.Errorf("%s: plain memory became %+v", name, f)
		}
	}
}

func TestMayRead(t *testing.T) {
	m := &memory{pagemap: -1, pageSize: 4096, shared: map[string]bool{"00:01": true, "00:19": true}}
	for _, tc := range []struct {
		name string
		m    mapping
		may  bool
	}{
		{"anonymous", mapping{Read: true, Write: true}, true},
		{"stack", mapping{Path: "[stack]", Read: true, Write: true}, true},
		{"named anonymous", mapping{Path: "[anon:glibc: malloc]", Read: true, Write: true}, true},
		{"vvar", mapping{Path: "[vvar]", Read: true}, false},
		{"memfd", mapping{Path: "/memfd:x", Deleted: true, Inode: 1, Device: "00:01", Shared: true}, true},
		{"System V segment 0", mapping{Path: "/SYSV00000000", Deleted: true, Device: "00:01", Shared: true}, true},
		{"shm_open", mapping{Path: "/dev/shm/psm_1", Inode: 5, Device: "00:19", Shared: true}, true},
		{"device file on a container's tmpfs", mapping{Path: "/dev/nvidia0", Inode: 5, Device: "00:19", Shared: true}, false},
		{"file server posing as shared memory", mapping{Path: "/memfd:x", Deleted: true, Inode: 1, Device: "00:2a", Shared: true}, false},
		{"shared file", mapping{Path: "/m/a", Inode: 5, Device: "fe:00", Shared: true, Write: true}, false},
		{"private file, no pagemap", mapping{Path: "/m/a", Inode: 5, Device: "fe:00", Write: true}, false},
		{"constants", mapping{Path: "/m/a", Inode: 5, Device: "fe:00"}, false},
	} {
		if err := m.mayRead(&tc.m, 0, 8); (err == nil) != tc.may {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

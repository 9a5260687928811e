package process

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestWaitsForFileSystem(t *testing.T) {
	for wchan, want := range map[string]bool{
		"request_wait_answer": true, "folio_wait_bit_common": true, "__folio_lock": true, "filemap_fault": true, "rpc_wait_bit_killable": true,
		"io_schedule": true, "nfs4_proc_open": true, "ceph_mdsc_do_request": true, "wait_for_response": true, "p9_client_rpc": true, "cl_sync_io_wait": true,
		"cxiWaitEventWait": true, "fuse_wait_on_page_writeback": true,
		"fuse_dev_do_read": false, "futex_do_wait": false, "poll_schedule_timeout.constprop.0": false, "anon_pipe_read": false, "": false,
		"do_wait": false, "hrtimer_nanosleep": false, "wait_woken": false, "locks_lock_inode_wait": false, "kernel_clone": false, "unix_stream_read_generic": false,
	} {
		if got := waitsForFileSystem(wchan); got != want {
			t.Errorf("%q: %v", wchan, got)
		}
	}
}

func TestFDArgument(t *testing.T) {
	for number, want := range map[uint64]int{unix.SYS_READ: 0, unix.SYS_PREAD64: 0, unix.SYS_SENDFILE: 1, unix.SYS_OPENAT: -1, unix.SYS_FUTEX: -1, 1 << 40: -1} {
		if got := fdArgument(number); got != want {
			t.Errorf("call %d: %d", number, got)
		}
	}
}

func TestGuessMount(t *testing.T) {
	root, disk := mount{ID: 1, Point: "/", FSType: "overlay"}, mount{ID: 2, Point: "/m", FSType: "ext4", Source: "/dev/sda1"}
	nfs, other := mount{ID: 3, Point: "/nas", FSType: "nfs4", Source: "nas:/x"}, mount{ID: 4, Point: "/nas2", FSType: "nfs", Source: "https://me:secret@host/y"}
	fuse := mount{ID: 5, Point: "/f", FSType: "fuse.s3fs", Source: "s3fs"}
	for _, tc := range []struct {
		name    string
		mounts  []mount
		weights []string
		wchan   string
		want    int
	}{
		{"the mount of the weights, any kind", []mount{root, disk, fuse}, []string{"/m/a", "/m/b"}, "folio_wait_bit_common", 2},
		{"weights on two mounts", []mount{root, disk, fuse}, []string{"/m/a", "/f/b"}, "folio_wait_bit_common", 0},
		{"weights on another kind, one that fits", []mount{root, disk, fuse}, []string{"/m/a"}, "request_wait_answer", 5},
		{"weights on the kind", []mount{root, nfs, other}, []string{"/nas/a"}, "rpc_wait_bit_killable", 3},
		{"no weights, one of the kind", []mount{root, disk, nfs}, nil, "rpc_wait_bit_killable", 3},
		{"no weights, two of the kind", []mount{root, nfs, other}, nil, "nfs4_do_open", 0},
		{"no weights, any kind", []mount{root, disk}, nil, "io_schedule", 0},
	} {
		got := guessMount(tc.mounts, tc.weights, kindOfWait(tc.wchan))
		if got == nil && tc.want != 0 || got != nil && got.ID != tc.want {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
	if m := other.evidence(); m.Source == other.Source {
		t.Errorf("a password in %q", m.Source)
	}
}

func TestStorageSleepers(t *testing.T) {
	f := evidence.ProcessFrame{PID: 7, Threads: []evidence.ThreadFrame{
		{TID: 7, State: "S", Syscall: "1000 0x0 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x7f00", Wchan: "__do_sys_pause"},
		{TID: 8, State: "S", Syscall: "-1 0x7ff0 0x7f00", Wchan: "request_wait_answer"},
		{TID: 9, State: "D", Syscall: fmt.Sprint(unix.SYS_PREAD64) + " 0x3 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x7f00", Wchan: "folio_wait_bit_common"},
		{TID: 10, State: "R", Syscall: "running", Wchan: ""},
		{TID: 11, State: "S", Syscall: fmt.Sprint(unix.SYS_READ) + " 0x5 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x7f00", Wchan: "anon_pipe_read"},
		{TID: 12, State: "D", Syscall: fmt.Sprint(unix.SYS_READ) + " 0x5 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x7f00"}, // wchan not readable
		{TID: 14, State: "S", Syscall: fmt.Sprint(unix.SYS_FLOCK) + " 0x5 0x2 0x0 0x0 0x0 0x0 0x7ff0 0x7f00", Wchan: "nfs4_retry_setlk"},
		{TID: 13, State: "S", Syscall: fmt.Sprint(unix.SYS_READ) + " 0x5 0x0 0x0 0x0 0x0 0x0 0x7ff0 0x7f00", Wchan: "fuse_dev_do_read"},
	}}
	var tids []int
	for _, w := range storageSleepers(&f) {
		tids = append(tids, w.TID)
	}
	if d := cmp.Diff([]int{8, 9, 12}, tids); d != "" {
		t.Error(d)
	}
}

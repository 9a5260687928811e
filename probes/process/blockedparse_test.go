package process

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

func decodeReading(t *testing.T, b []byte) reading {
	t.Helper()
	var v reading
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return v
}

func TestBlockedOf(t *testing.T) {
	const minusOne = math.MaxUint32 // as the kernel prints an int of -1
	for _, c := range []struct {
		number uint64
		args   [6]uint64
		want   evidence.Blocked
		ok     bool
	}{
		{unix.SYS_READ, [6]uint64{7}, evidence.Blocked{Kind: evidence.BlockPipeRead, FD: 7}, true},
		{unix.SYS_READ, [6]uint64{0xdead00000007}, evidence.Blocked{Kind: evidence.BlockPipeRead, FD: 7}, true},
		{unix.SYS_WRITEV, [6]uint64{1}, evidence.Blocked{Kind: evidence.BlockPipeWrite, FD: 1}, true},
		{unix.SYS_RECVMSG, [6]uint64{3}, evidence.Blocked{Kind: evidence.BlockSocketRead, FD: 3}, true},
		{unix.SYS_SENDTO, [6]uint64{3}, evidence.Blocked{Kind: evidence.BlockSocketWrite, FD: 3}, true},
		{unix.SYS_WAIT4, [6]uint64{minusOne}, evidence.Blocked{Kind: evidence.BlockChild, FD: -1}, true},
		{unix.SYS_WAITID, [6]uint64{1, 5}, evidence.Blocked{Kind: evidence.BlockChild, FD: -1}, true},
		{unix.SYS_FLOCK, [6]uint64{4, 2}, evidence.Blocked{Kind: evidence.BlockFlock, FD: 4}, true},
		{unix.SYS_FCNTL, [6]uint64{4, 7}, evidence.Blocked{Kind: evidence.BlockPosixLock, FD: 4}, true},
		{unix.SYS_FCNTL, [6]uint64{4, 38}, evidence.Blocked{Kind: evidence.BlockOFDLock, FD: 4}, true},
		{unix.SYS_FCNTL, [6]uint64{4, 3}, evidence.Blocked{}, false},
		{unix.SYS_ACCEPT4, [6]uint64{4}, evidence.Blocked{}, false},
		{unix.SYS_PREAD64, [6]uint64{4}, evidence.Blocked{}, false},
		{unix.SYS_CLOCK_NANOSLEEP, [6]uint64{}, evidence.Blocked{}, false},
	} {
		got, ok := blockedOf(call{Number: c.number, Args: c.args})
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
			t.Errorf("call %d(%#x): %v\n%s", c.number, c.args, ok, diff)
		}
	}
}

func TestChildWaitOf(t *testing.T) {
	for _, c := range []struct {
		call call
		want childWait
	}{
		{call{Number: unix.SYS_WAIT4, Args: [6]uint64{42}}, childWait{pid: 42, group: -1, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAIT4, Args: [6]uint64{0xffffffff}}, childWait{all: true, group: -1, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAIT4, Args: [6]uint64{math.MaxUint64}}, childWait{all: true, group: -1, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAIT4, Args: [6]uint64{0}}, childWait{group: 0, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAIT4, Args: [6]uint64{0xffffffd6}}, childWait{group: 42, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAITID, Args: [6]uint64{0, 0, 0, unix.WEXITED}}, childWait{all: true, group: -1, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAITID, Args: [6]uint64{1, 9, 0, unix.WEXITED}}, childWait{pid: 9, group: -1, pidfd: -1, ends: true}},
		{call{Number: unix.SYS_WAITID, Args: [6]uint64{2, 9, 0, unix.WSTOPPED}}, childWait{group: 9, pidfd: -1}},
		{call{Number: unix.SYS_WAITID, Args: [6]uint64{3, 5, 0, unix.WEXITED}}, childWait{group: -1, pidfd: 5, ends: true}},
	} {
		got, ok := childWaitOf(c.call)
		if !ok || got != c.want {
			t.Errorf("%+v: got %+v, %v, want %+v", c.call, got, ok, c.want)
		}
	}
	if _, ok := childWaitOf(call{Number: unix.SYS_WAITID, Args: [6]uint64{77}}); ok {
		t.Error("an unknown type of ID was taken")
	}
}

func TestParseRelative(t *testing.T) {
	const text = "Name:\tNSpid:\t7\nState:\tS (sleeping)\nTgid:\t812\nPid:\t812\nPPid:\t700\nTracerPid:\t0\nNSpid:\t812\t5\nNSpgid:\t700\t0\n"
	got, ok := parseRelative([]byte(text))
	want := relative{pid: 812, parent: 700, nsPID: []int{812, 5}, nsGroup: []int{700, 0}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(relative{})); diff != "" || !ok {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at(got.nsPID, 2) != 5 || at(got.nsPID, 3) != 0 || at(got.nsPID, 0) != 0 {
		t.Error("IDs by depth")
	}
}

const locksText = `1: POSIX  ADVISORY  WRITE 20159 fe:00:9977970 0 EOF
1: -> POSIX  ADVISORY  WRITE 20160 fe:00:9977970 0 EOF
1:  -> POSIX  ADVISORY  READ  20161 fe:00:9977970 10 20
2: FLOCK  ADVISORY  WRITE 19443 fe:00:9978078 0 EOF
3: OFDLCK ADVISORY  WRITE -1 00:2d:7 0 EOF
3: -> OFDLCK ADVISORY  WRITE -1 00:2d:7 0 EOF
4: LEASE  ACTIVE    READ  500 08:01:12 0 EOF
5: POSIX  ADVISORY  READ  9 <none>:0 0 EOF
`

func TestParseLocks(t *testing.T) {
	first := fileLock{ID: 1, Type: "POSIX", Mode: "WRITE", PID: 20159, Device: "fe:00", Inode: 9977970, Range: "0 EOF"}
	second := fileLock{ID: 3, Type: "OFDLCK", Mode: "WRITE", PID: -1, Device: "00:2d", Inode: 7, Range: "0 EOF"}
	waits := func(l fileLock) fileLock { l.Waits = true; return l }
	one, two := waits(first), waits(first)
	one.PID, two.PID, two.Mode, two.Range = 20160, 20161, "READ", "10 20"
	want := []blockedLock{{one, first}, {two, first}, {waits(second), second}}
	if diff := cmp.Diff(want, parseLocks([]byte(locksText)), cmp.AllowUnexported(blockedLock{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{"", "1:", "1: -> ", "x: FLOCK ADVISORY WRITE 1 a:b:1 0 EOF", "1: FLOCK ADVISORY WRITE - a:b:1 0 EOF", "1: FLOCK ADVISORY WRITE 1 1 0 EOF"} {
		if l, ok := parseFileLock([]byte(line)); ok {
			t.Errorf("%q was taken for %+v", line, l)
		}
	}
}

func TestParseFDInfo(t *testing.T) {
	for _, c := range []struct {
		text          string
		want          fdinfo
		reads, writes bool
	}{
		{"pos:\t0\nflags:\t02000000\nmnt_id:\t16\nino:\t1765644\n", fdinfo{Flags: 0o2000000, Inode: 1765644, MountID: 16}, true, false},
		{"pos:\t0\nflags:\t01\nmnt_id:\t16\nino:\t5\n", fdinfo{Flags: 1, Inode: 5, MountID: 16}, false, true},
		{"flags:\t0100002\nino:\t5\nscm_fds: 3\n", fdinfo{Flags: 0o100002, Inode: 5, InFlight: 3}, true, true},
		{"flags:\t010000000\nino:\t5\n", fdinfo{Flags: 0o10000000, Inode: 5}, false, false},
		{"flags:\t02000002\nPid:\t-1\n", fdinfo{Flags: 0o2000002}, true, true},
		{"flags:\t02000002\nPid:\t77\nNSpid:\t77\t3\n", fdinfo{Flags: 0o2000002, PID: 77}, true, true},
		{"flags:\t02100001\nino:\t9978078\nlock:\t1: FLOCK  ADVISORY  WRITE 19443 fe:00:9978078 0 EOF\n",
			fdinfo{Flags: 0o2100001, Inode: 9978078, Locks: []fileLock{{ID: 1, Type: "FLOCK", Mode: "WRITE", PID: 19443, Device: "fe:00", Inode: 9978078, Range: "0 EOF"}}}, false, true},
	} {
		got := parseFDInfo([]byte(c.text))
		if diff := cmp.Diff(c.want, got); diff != "" || got.reads() != c.reads || got.writes() != c.writes {
			t.Errorf("%q: reads %v, writes %v\n%s", c.text, got.reads(), got.writes(), diff)
		}
	}
}

// A pair of sockets of our own, as the kernel tells of them.
func TestAskUnix(t *testing.T) {
	if !diagWorks() {
		t.Skip("no unix_diag")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var inode [2]uint32
	for i, fd := range pair {
		defer unix.Close(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			t.Fatal(err)
		}
		inode[i] = uint32(st.Ino)
	}
	if _, err := unix.Write(pair[0], []byte("12345")); err != nil {
		t.Fatal(err)
	}
	fd, err := openDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	s, err := askUnix(fd, inode[1])
	if err != nil || s.Inode != inode[1] || s.Peer != inode[0] || s.Type != unix.SOCK_STREAM || s.ReadBytes == nil || *s.ReadBytes != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := askUnix(fd, 1); err != errNoUnixSocket {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func FuzzParseLocks(f *testing.F) {
	f.Add([]byte(locksText))
	f.Add([]byte("1: -> FLOCK  ADVISORY  WRITE 1 0:0:1 0 EOF\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, l := range parseLocks(b) {
			if !l.waiter.Waits || l.root.Waits || l.waiter.ID != l.root.ID || l.root.Type == "" {
				t.Errorf("%+v", l)
			}
		}
	})
}

func FuzzParseFDInfo(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t02100001\nino:\t9978078\nlock:\t1: FLOCK  ADVISORY  WRITE 19443 fe:00:9978078 0 EOF\nscm_fds: 1\nPid:\t4\nUserFiles:\t2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if i := parseFDInfo(b); i.PID < 0 || len(i.Locks) > maxLocksOfFD {
			t.Errorf("%+v", i)
		}
	})
}

func FuzzParseUnixAnswer(f *testing.F) {
	b := unixQuestion(7)
	f.Add(b)
	answer := append([]byte{}, b[:16]...)
	answer[0] = 48
	answer = append(answer, unix.AF_UNIX, 1, 1, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	answer = append(answer, 8, 0, unixDiagPeer, 0, 9, 0, 0, 0, 12, 0, unixDiagQueues, 0)
	answer = append(answer, 1, 0, 0, 0, 2, 0, 0, 0)
	answer[0] = byte(len(answer))
	f.Add(answer)
	if s, err := parseUnixAnswer(answer); err != nil || s.Peer != 9 || *s.WrittenBytes != 2 {
		f.Errorf("%+v, %v", s, err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseUnixAnswer(b); err == nil && (s.ReadBytes == nil) != (s.WrittenBytes == nil) {
			t.Errorf("%+v", s)
		}
	})
}

func FuzzParseRelative(f *testing.F) {
	f.Add([]byte("State:\tZ (zombie)\nPid:\t3\nPPid:\t1\nTracerPid:\t0\nNSpid:\t3\t1\nNSpgid:\t1\t0\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, _ := parseRelative(b)
		if p.pid < 0 || p.parent < 0 || len(p.nsPID) > maxNamespaces || at(p.nsPID, len(p.nsPID)+1) != 0 {
			t.Errorf("%+v", p)
		}
	})
}

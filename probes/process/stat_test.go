package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStat(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     stat
		bad      bool
	}{
		{"thread", "4242 (python3) S 4200 4242 4200 34816 4242 4194304 12345 99 6 1 321 45 7 8 20 0 131 0 987654 1234567 890 18446744073709551615 1 1 0 0 0 0 0 16781312 17642 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
			stat{PID: 4242, Comm: "python3", State: 'S', PPID: 4200, Flags: 4194304, MinorFaults: 12345, MajorFaults: 6, User: 321, System: 45, ChildUser: 7, ChildSystem: 8, Threads: 131, Start: 987654, CPU: 1}, false},
		{"name like the rest of a line", "7 (a) R 1 (b) Z 0) S 1 7 7 0 -1 0 1 0 2 0 3 4 5 6 20 0 1 0 8 0 0\n",
			stat{PID: 7, Comm: "a) R 1 (b) Z 0", State: 'S', PPID: 1, MinorFaults: 1, MajorFaults: 2, User: 3, System: 4, ChildUser: 5, ChildSystem: 6, Threads: 1, Start: 8}, false},
		{"newline and spaces in the name", "7 (a\n b ) D 1 7 7 0 -1 0 1 0 2 0 3 4 5 6 20 0 1 0 8 0 0",
			stat{PID: 7, Comm: "a\n b ", State: 'D', PPID: 1, MinorFaults: 1, MajorFaults: 2, User: 3, System: 4, ChildUser: 5, ChildSystem: 6, Threads: 1, Start: 8}, false},
		{"zombie with its wait status", "9 (sh) Z 1 9 9 0 -1 4228108 100 0 0 0 0 0 0 0 20 0 1 0 555 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 768\n",
			stat{PID: 9, Comm: "sh", State: 'Z', PPID: 1, Flags: 4228108, MinorFaults: 100, Threads: 1, Start: 555, ExitCode: 768}, false},
		{"negative child time", "7 (a) S 1 7 7 0 -1 0 1 0 2 0 3 4 -5 6 20 0 1 0 8 0 0",
			stat{PID: 7, Comm: "a", State: 'S', PPID: 1, MinorFaults: 1, MajorFaults: 2, User: 3, System: 4, ChildSystem: 6, Threads: 1, Start: 8}, false},
		{"a thread of the kernel", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 8 0 0",
			stat{PID: 2, Comm: "kthreadd", State: 'S', Flags: 0x208040, Threads: 1, Start: 8}, false},
		{"cut off", "7 (a) S 1 7 7 0", stat{}, true},
		{"no name", "7 S 1 7", stat{}, true},
		{"empty", "", stat{}, true},
		{"letters for numbers", "7 (a) S x 7 7 0 -1 0 1 0 2 0 3 4 5 6 20 0 1 0 8 0 0", stat{}, true},
	} {
		got, err := parseStat([]byte(tc.in))
		if (err != nil) != tc.bad {
			t.Errorf("%s: error %v", tc.name, err)
		}
		if diff := cmp.Diff(tc.want, got); !tc.bad && diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (a) S 1 7 7 0 -1 0 1 0 2 0 3 4 5 6 20 0 1 0 8 0 0\n"))
	f.Add([]byte("7 (a)) Z"))
	f.Add([]byte(")("))
	f.Add([]byte("1 () "))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if len(s.Comm) > maxComm {
			t.Fatalf("name of %d bytes", len(s.Comm))
		}
		if err == nil && (s.State == 0 || s.PPID < 0 || s.Threads < 0 || s.ExitCode < 0) {
			t.Fatalf("accepted %q as %+v", b, s)
		}
	})
}

func TestParseStatus(t *testing.T) {
	const text = "Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4242\nNgid:\t0\nPid:\t4243\nPPid:\t1\nTracerPid:\t99\n" +
		"Uid:\t1000\t1001\t1002\t1003\nGid:\t5\t5\t5\t5\nNSpid:\t4243\t43\t7\nVmRSS:\t  300 kB\nRssAnon:\t     100 kB\nRssFile:\t     200 kB\n" +
		"RssShmem:\t       0 kB\nVmSwap:\t       4 kB\nCapEff:\t0000000000080000\nvoluntary_ctxt_switches:\t5\n"
	got := parseStatus([]byte(text))
	kb := func(n uint64) *uint64 { n *= 1024; return &n }
	want := status{Tgid: 4242, TracerPID: 99, UID: 1001, NSPID: []int{4243, 43, 7}, RSSAnon: kb(100), RSSFile: kb(200), RSSShmem: kb(0), Swap: kb(4), CapEff: 1 << capSysPtrace}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A zombie has no memory lines: not known, not zero.
	if got := parseStatus([]byte("Name:\tx\nTgid:\t5\nUid:\t0\t0\t0\t0\n")); got.RSSAnon != nil || got.Swap != nil || got.UID != 0 {
		t.Errorf("zombie: %+v", got)
	}
	if got := parseStatus(nil); got.UID != -1 {
		t.Errorf("unknown user became %d", got.UID)
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add([]byte("Uid:\t0\nNSpid:\nRssAnon:\t99999999999999999999 kB\nCapEff:\tzz\n::"))
	f.Add([]byte("NSpid:\t1\t2\t3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s := parseStatus(b); len(s.NSPID) > maxNamespaces {
			t.Fatalf("%d namespaces", len(s.NSPID))
		}
	})
}

func TestParseIO(t *testing.T) {
	io := parseIO([]byte("rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 7\n"))
	if *io.ReadChar != 1 || *io.WriteChar != 2 || *io.Read != 5 || *io.Write != 6 {
		t.Errorf("%+v", io)
	}
	if io := parseIO([]byte("rchar: x\nread_bytes\n")); io != (ioCounters{}) {
		t.Errorf("garbage became %+v", io)
	}
}

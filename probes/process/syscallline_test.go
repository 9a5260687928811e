package process

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestParseCall(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     call
		ok       bool
	}{
		{"mutex", "202 0x55d0c0a0 0x80 0x2 0x0 0x0 0x7f1 0x7ffc10 0x7f2b\n",
			call{202, [6]uint64{0x55d0c0a0, 0x80, 2, 0, 0, 0x7f1}, 0x7ffc10, 0x7f2b}, true},
		{"without a newline", "7 0x1 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x1 0x2",
			call{7, [6]uint64{1, 1, 0xffffffffffffffff}, 1, 2}, true},
		{"running", "running", call{}, false},
		{"asleep, in no call", "-1 0x7ffc10 0x7f2b", call{}, false},
		{"zombie", "-1 0x0 0x0", call{}, false},
		{"cut off", "202 0x1 0x2", call{}, false},
		{"too long", "202 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9", call{}, false},
		{"number too large", "202 0x10000000000000000 0x2 0x3 0x4 0x5 0x6 0x7 0x8", call{}, false},
		{"empty", "", call{}, false},
	} {
		got, ok := parseCall([]byte(tc.in))
		if diff := cmp.Diff(tc.want, got); ok != tc.ok || diff != "" {
			t.Errorf("%s: ok %v (-want +got):\n%s", tc.name, ok, diff)
		}
	}
}

func FuzzParseCall(f *testing.F) {
	f.Add([]byte("202 0x55d0c0a0 0x80 0x2 0x0 0x0 0x7f1 0x7ffc10 0x7f2b\n"))
	f.Add([]byte("-1 0x0 0x0"))
	f.Add([]byte("        "))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := parseCall(b); ok {
			futexOf(c)
		} else if c != (call{}) {
			t.Fatalf("refused %q and returned %+v", b, c)
		}
	})
}

func TestParseSchedstat(t *testing.T) {
	if got, ok := parseSchedstat([]byte("123456 789 10\n")); !ok || got != (schedstat{123456, 789, 10}) {
		t.Errorf("%+v %v", got, ok)
	}
	for _, bad := range []string{"", "0 0 0\n", "1 2\n", "1 2 3 4\n", "a b c\n", "1 2 -3\n"} {
		if got, ok := parseSchedstat([]byte(bad)); ok {
			t.Errorf("%q became %+v", bad, got)
		}
	}
}

// Calls as measured on each runtime (x86-64).
func TestFutexOf(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("numbers of x86-64")
	}
	for _, tc := range []struct {
		name, in string
		want     evidence.Futex
		word     bool
	}{
		{"pthread_mutex_lock", "202 0xa0 0x80 0x2 0x0 0x0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa0", Op: 0x80, Private: true, Val: 2}, true},
		{"process-shared mutex", "202 0xa0 0x0 0x2 0x0 0x0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa0", Val: 2}, true},
		{"robust mutex", "202 0xa0 0x0 0x80001092 0x0 0x0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa0", Val: 0x80001092}, true},
		{"PI mutex", "202 0xa0 0x86 0x0 0x0 0x0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa0", Op: 0x86, Command: 6, Private: true}, true},
		{"pthread_cond_wait", "202 0xa8 0x189 0x0 0x0 0x0 0xffffffff 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa8", Op: 0x189, Command: 9, Private: true}, true},
		{"cond_timedwait", "202 0xa8 0x189 0x0 0x7ffd 0x0 0xffffffff 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa8", Op: 0x189, Command: 9, Private: true, Timed: true}, false},
		{"pthread_join", "202 0xa8 0x109 0x1092 0x0 0x0 0xffffffff 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa8", Op: 0x109, Command: 9, Val: 0x1092}, true},
		{"musl, sign-extended", "202 0xa8 0x80 0xffffffff80000010 0x0 0x0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa8", Op: 0x80, Private: true, Val: 0x80000010}, true},
		{"requeue", "202 0xa8 0x8b 0x1 0x0 0xb0 0x0 0x1 0x2",
			evidence.Futex{Call: "futex", Addr: "0xa8", Op: 0x8b, Command: 11, Private: true, Val: 1}, false},
		{"futex_wait", "455 0xa8 0x5 0xffffffff 0x82 0x0 0x1 0x1 0x2",
			evidence.Futex{Call: "futex_wait", Addr: "0xa8", Op: 0x82, Command: 9, Private: true, Val: 5}, true},
		{"futex_wait of 64 bit, timed", "455 0xa8 0x5 0xffffffff 0x83 0x7ffd 0x1 0x1 0x2",
			evidence.Futex{Call: "futex_wait", Addr: "0xa8", Op: 0x83, Command: 9, Private: true, Val: 5, Timed: true}, false},
		{"futex_waitv", "449 0xa8 0x2 0x0 0x0 0x1 0x0 0x1 0x2",
			evidence.Futex{Call: "futex_waitv", Addr: "0xa8"}, false},
	} {
		c, ok := parseCall([]byte(tc.in))
		if !ok {
			t.Fatalf("%s: no call", tc.name)
		}
		got, ok := futexOf(c)
		if diff := cmp.Diff(tc.want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if readsWord(&got) != tc.word {
			t.Errorf("%s: reads its word: %v", tc.name, !tc.word)
		}
	}
	if _, ok := futexOf(call{Number: 7}); ok {
		t.Error("poll became a futex")
	}
	if sysFutex("arm64") != 98 {
		t.Error("number of arm64")
	}
}

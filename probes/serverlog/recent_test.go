package serverlog

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// standing is the mark of a prefix where it stands in a file.
func standing(r *recent, prefix []byte) *mark {
	before := []byte("the line before\n")
	return r.find(slices.Concat(before, prefix, []byte("known\n")), len(before)+len(prefix))
}

// Prefixes that the quick comparison takes for equal have the same key.
func FuzzPrefix(f *testing.F) {
	f.Add([]byte("[2026-11-30 17:07:19 TP1] "), []byte("[2026-11-30 18:17:29 TP1] "))
	f.Add([]byte("[2026-11-30 17:07:19 TP1] "), []byte("[2026-11-30 17:07:19 TP2] "))
	f.Add([]byte("(VllmWorker-0 pid=10239) 1:2"), []byte("(VllmWorker-1 pid=10239) 1;2"))
	f.Add([]byte("\x1b[1;36m(TP\x1b[0m1 pid=7)\x1b[0;0m 10:00:01"), []byte("\x1b[1;36m(TP\x1b[0m2 pid=7)\x1b[0;0m 10:00:02"))
	f.Add([]byte("TP\x1b]0;x\x073 "), []byte("TP\x1b]0;x\x074 "))
	f.Add([]byte("1 2"), []byte("3 4"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) > maxPrefix || len(b) > maxPrefix || bytes.ContainsAny(slices.Concat(a, b), "\n\r\x00") {
			t.Skip() // a line holds none of these
		}
		r, m := &recent{}, &mark{}
		r.add(a, m)
		if standing(r, a) != m {
			t.Fatalf("%q is not found", a)
		}
		same := string(rankKey(nil, stripped(a))) == string(rankKey(nil, stripped(b))) && len(a) == len(b)
		if found := standing(r, b) == m; found && !same {
			t.Fatalf("%q is taken for %q", b, a)
		}
	})
}

func TestRecentFinds(t *testing.T) {
	tests := []struct {
		prefix, again string
		want          bool
	}{
		{"", "", true},
		{"1 2", "3 4", true},
		{"[10:00:00 TP0] ", "[23:59:59 TP0] ", true},
		{"[10:00:00 TP0] ", "[10:00:00 TP1] ", false},
		{"[10:00:00 TP0] ", "[10:00:00  TP0] ", false},
		{"[10:00:00 TP0] ", "[1a:00:00 TP0] ", false},
		{"[10:00:00 TP0] ", "[1?:00:00 TP0] ", false},
		{"[10:00:00 TP0] Lock 14007 ", "[10:00:00 TP0] Lock 98765 ", true},
		{"(EngineCore pid=7) INFO 11-30", "(EngineCore pid=8) INFO 11-30", false},
		{"\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m INFO 11-30", "\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m INFO 12-01", true},
		{"\x1b[1;36m(Worker_TP0 pid=7)\x1b[0;0m INFO 11-30", "\x1b[1;32m(Worker_TP0 pid=7)\x1b[0;0m INFO 11-30", false},
		// The digit belongs to a name, though an escape stands between.
		{"TP\x1b]0;x\x073 ", "TP\x1b]0;x\x074 ", false},
	}
	for _, tt := range tests {
		r, m := &recent{}, &mark{}
		r.add([]byte(tt.prefix), m)
		if got := standing(r, []byte(tt.again)) == m; got != tt.want {
			t.Errorf("%q after %q: found %v, want %v", tt.again, tt.prefix, got, tt.want)
		}
		// A prefix is not the end of a longer one.
		if standing(r, []byte("x"+tt.again)) != nil {
			t.Errorf("x%q is taken for %q", tt.again, tt.prefix)
		}
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	r := &recent{}
	prefix := func(i int) []byte { return []byte("[10:00:00 TP" + strings.Repeat("A", i) + "] ") }
	marks := make([]*mark, maxRecent+2*replaceEvery)
	for i := range marks {
		marks[i] = &mark{signature: i}
		r.add(prefix(i), marks[i])
		if i < maxRecent/2 {
			r.add(prefix(i), nil) // is there already
		}
	}
	for i := range marks {
		want := marks[i]
		switch {
		case i < 2, i >= maxRecent && (i-maxRecent+1)%replaceEvery != 0:
			want = nil
		}
		if got := standing(r, prefix(i)); got != want {
			t.Errorf("prefix %d: %v, want %v", i, got, want)
		}
	}
}

package serverlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/whyhang/whyhang/probes/evidence"
)

// dull are lines that are only counted from their second time on.
const dull = "[10:00:01 TP0] lock not acquired\n[10:00:02 TP1] lock not acquired\n\x1b[1;36m(e)\x1b[0;0m decode batch\n"

// scanInChunks reads a text as a log, so many bytes at once.
func scanInChunks(t *testing.T, c *catalogue, text string, chunk int) evidence.Log {
	t.Helper()
	s := newScanner(c)
	s.chunk = chunk
	res, err := s.read(source{ReaderAt: strings.NewReader(text)}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return told(t, c, res, strings.NewReader(text))
}

// Processes write into each other's lines: whatever stands beside a line that is
// only counted is found.
func TestNothingIsLostBesideCountedLines(t *testing.T) {
	const tp0, tp1 = "[10:00:03 TP0] lock not acquired", "[10:00:04 TP1] lock not acquired"
	type seen struct{ Ready, Locks0, Locks1, Batches, Ends, Launches, Errors int64 }
	tests := []struct {
		name, text string
		want       seen // beside 10 of each dull line
	}{
		{"retry, ready", tp0 + " [10:00:05] e is ready to serve", seen{Ready: 1, Locks0: 1}},
		{"ready, retry", "[10:00:05] e is ready to serve " + tp0, seen{Ready: 1, Locks0: 1}},
		{"ready directly behind", tp0 + "is ready to serve", seen{Ready: 1, Locks0: 1}},
		{"ready directly before", "is ready to serve" + tp0, seen{Ready: 1, Locks0: 1}},
		{"ready between", tp0 + "is ready to serve" + tp1, seen{Ready: 1, Locks0: 1, Locks1: 1}},
		{"two retries, ready", tp0 + tp1 + "is ready to serve", seen{Ready: 1, Locks0: 1, Locks1: 1}},
		{"the retry's prefix cut by ready", "[10:00:03 TP0] is ready to serve lock not acquired", seen{Ready: 1, Locks0: 1}},
		{"ready in the next line", tp0 + "\n[10:00:05] e is ready to serve", seen{Ready: 1, Locks0: 1}},
		{"behind a carriage return", tp0 + "\re is ready to serve", seen{Ready: 1, Locks0: 1}},
		{"behind a hole", tp0 + "\x00\x00\x00e is ready to serve", seen{Ready: 1, Locks0: 1}},
		{"a pattern", tp0 + "load ends after 7 s" + tp1 + "load ends after 8 s", seen{Ends: 2, Locks0: 1, Locks1: 1}},
		{"a batch, coloured", "\x1b[1;36m(e)\x1b[0;0m decode batch" + tp0, seen{Batches: 1, Locks0: 1}},
		{"an error, of a line that is known", "CUDA error " + tp0 + "\n" + tp1 + "CUDA error\n" + tp0 + "CUDA error" + tp1, seen{Locks0: 2, Locks1: 2}},
		{"an error, of a line that is counted", strings.Repeat("CUDA error "+tp0+"\n", 3), seen{Locks0: 3}},
		{"an error, of a line that is not", tp0 + "\nCUDA error\n" + tp1, seen{Locks0: 1, Locks1: 1, Errors: 1}},
		{"a prompt", tp0 + " prompt: 'is ready to serve" + tp1 + "\n" + tp1, seen{Locks0: 1, Locks1: 1}},
		{"almost ready", tp0 + "is ready to serv\n" + tp1, seen{Locks0: 1, Locks1: 1}},
		// What stands above a launch is forgotten, the first ten of each too.
		{"a launch", tp0 + "server starts" + tp1 + "\n" + tp0, seen{Launches: 1, Locks0: -9, Locks1: -9, Batches: -10}},
	}
	c := catalogueOf(t, few)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Repeat(dull, 10) + tt.text
			want := tt.want
			want.Locks0, want.Locks1, want.Batches = want.Locks0+10, want.Locks1+10, want.Batches+10
			for chunk := 1; chunk <= len(text); chunk++ {
				if chunk == 60 {
					chunk = len(text) - len(tt.text) - 2 // a border at each place in the last lines
				}
				log := scanInChunks(t, c, text, chunk)
				count := func(signature, rank string) int64 { return markOf(log, signature, rank).Count }
				got := seen{
					count("e.ready.ready", "") + count("e.ready.ready", "TP0") + count("e.ready.ready", "TP1"),
					count("e.any.lock", "TP0"), count("e.any.lock", "TP1"), count("e.serving.batch", "") + count("e.serving.batch", "TP0"),
					count("e.weights.end", "TP0") + count("e.weights.end", "TP1"), int64(log.Launches), int64(len(log.Errors)),
				}
				if got != want {
					t.Fatalf("in chunks of %d: %+v, want %+v", chunk, got, want)
				}
			}
		})
	}
}

// The first and the last of many lines are told exactly, wherever chunks end.
func TestLastOfCountedLines(t *testing.T) {
	const n = 5000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[10:%02d:%02d TP%d] lock not acquired, try %d\n", i/60%60, i%60, i%3, i)
		if i%7 == 0 {
			b.WriteString("something else\n")
		}
	}
	text := b.String()
	c := catalogueOf(t, few)
	for _, chunk := range []int{1 << 20, 100_000, 20_000, 1000} {
		log := scanInChunks(t, c, text, chunk)
		for rank := range 3 {
			last := n - 1 - (n-1-rank)%3
			m := markOf(log, "e.any.lock", fmt.Sprintf("TP%d", rank))
			if m.Last == nil {
				t.Fatalf("no last: %+v", m)
			}
			for _, w := range []struct {
				i   int
				hit evidence.Hit
			}{{rank, m.First}, {last, *m.Last}} {
				want := fmt.Sprintf("[10:%02d:%02d TP%d] lock not acquired, try %d", w.i/60%60, w.i%60, rank, w.i)
				offset := strings.Index(text, want+"\n")
				line := 1 + strings.Count(text[:offset], "\n")
				if w.hit.Text != want || w.hit.Offset != int64(offset) || w.hit.Line != int64(line) || w.hit.At == nil || w.hit.At.Second() != w.i%60 {
					t.Errorf("chunks of %d: %+v, want %q at %d in line %d", chunk, w.hit, want, offset, line)
				}
			}
			if m.Count != int64((n+2-rank)/3) {
				t.Errorf("chunks of %d: counted %d of TP%d", chunk, m.Count, rank)
			}
		}
	}
}

// Counting a line tells the same as taking each one apart.
func TestCountingTellsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	apart := catalogueOf(t, few)
	for i := range apart.literals {
		apart.literals[i].counted = -1
	}
	c := catalogueOf(t, few)
	lines := strings.SplitAfter(dull+"[10:00:02] load begins\ndecode batch\n[10:00:03 TP0] e is ready to serve\n", "\n")
	// Which time is first depends on the whole line being there.
	ignore := cmpopts.IgnoreFields(evidence.Log{}, "First")
	for range 300 {
		var b strings.Builder
		for range 1 + r.IntN(40) {
			if r.IntN(3) == 0 {
				b.WriteString(randomLog(r, 3))
				continue
			}
			line := lines[r.IntN(len(lines))]
			if r.IntN(5) == 0 {
				line = strings.TrimSuffix(line, "\n")
			}
			b.WriteString(line)
		}
		text := b.String()
		chunk := 1 + r.IntN(300*(1+9*r.IntN(2)))
		if diff := cmp.Diff(scanInChunks(t, apart, text, chunk), scanInChunks(t, c, text, chunk)); diff != "" {
			t.Fatalf("%q in chunks of %d (-taken apart, +counted):\n%s", text, chunk, diff)
		}
		// A line without newline is told, and read again when it has grown.
		s := newScanner(c)
		var res result
		var err error
		for at := 0; ; at = min(len(text), at+1+r.IntN(50)) {
			if res, err = s.read(source{ReaderAt: strings.NewReader(text[:at])}, time.Time{}); err != nil {
				t.Fatal(err)
			}
			if at == len(text) {
				break
			}
		}
		if diff := cmp.Diff(scanInChunks(t, apart, text, chunk), told(t, c, res, strings.NewReader(text)), ignore); diff != "" {
			t.Fatalf("%q with pauses (-taken apart, +counted):\n%s", text, diff)
		}
	}
}

// A literal that begins a prompt as well hides what follows, each time.
func TestPromptIsNotOnlyCounted(t *testing.T) {
	s := few
	s.Signatures = append(slices.Clone(s.Signatures), evidence.Signature{ID: "e.serving.request", Engine: "e", Kind: evidence.KindActivity, Literal: "Received request "})
	log := scanText(t, s, strings.Repeat("[10:00:01] Received request e is ready to serve\n", 3))
	if markOf(log, "e.serving.request", "").Count != 3 || markOf(log, "e.ready.ready", "").Count != 0 {
		t.Errorf("%+v", log.Marks)
	}
}

package literal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// never keeps no number.
func never([]byte, int) bool { return false }

// plain are hits without notes.
var plain = cmpopts.IgnoreFields(Hit{}, "Note")

// searched is what a searcher finds that has seen the text before, as often as
// it takes to know all its lines by their shape.
func searched(t testing.TB, literals []string, text string) []Hit {
	t.Helper()
	m, err := New(literals)
	if err != nil {
		t.Fatal(err)
	}
	s := m.Searcher(never)
	want := m.AppendAll(nil, []byte(text))
	var got []Hit
	for i := range 4 {
		s.skip, s.useless = 0, 0
		got = s.AppendAll(nil, []byte(text))
		if !slices.EqualFunc(want, got, func(a, b Hit) bool { return order(a, b) == 0 }) {
			diff := cmp.Diff(want, got, plain)
			t.Fatalf("%q in %q, time %d (-matcher, +searcher):\n%s", literals, text, i+1, diff)
		}
	}
	return got
}

// kinds are lines like those of a server, with numbers to fill in.
var kinds = []string{
	"[2026-11-30 17:%02d:%02d TP%d] Decode batch, #running-req: %d, #token: %d, token usage: 0.%d\n",
	"[2026-11-30 17:%02d:%02d TP%d] Load weight end. elapsed=%d.%d s, mem usage=%d GB\n",
	"(EngineCore pid=%d) INFO 11-30 %d:%d: shard %d of %d, HTTP/1.%d\n",
	"%d short %d %d %d %d %d\n",
	"\x1b[1;3%dm(APIServer)\x1b[0;%dm error 98 at %d: %d %d %d is what stands in this line\r%[1]d%% of all\n",
}

func kind(r *rand.Rand) string {
	n := func(most int) int { return r.IntN(most) }
	return fmt.Sprintf(kinds[n(len(kinds))], n(60), n(60), n(8), n(120), n(1000), n(10))
}

var wanted = []string{"Load weight end", "Decode batch", "HTTP/1.1\" 200", "HTTP/1.1", "error 98", "TP3] Decode", "is what stands", "% of all", "99 of 99", "x=1y"}

func TestSearcherFindsTheSame(t *testing.T) {
	if !hasShapes {
		t.Skip("this processor has no shapes of lines")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var b strings.Builder
		for range 1 + r.IntN(60) {
			line := kind(r)
			switch r.IntN(12) {
			case 0: // something known in the middle of it
				at, l := r.IntN(len(line)), wanted[r.IntN(len(wanted))]
				line = line[:at] + l + line[at:]
			case 1: // or over it
				at, l := r.IntN(len(line)), wanted[r.IntN(len(wanted))]
				line = line[:at] + l + line[min(len(line), at+len(l)):]
			case 2: // or no end
				line = strings.TrimSuffix(line, "\n")
			case 3:
				line = strings.Repeat(line[:len(line)-1], 1+r.IntN(30)) + "\n"
			}
			b.WriteString(line)
		}
		searched(t, wanted, b.String())
	}
}

// A known string is found wherever it stands in a line that is otherwise one of
// thousands.
func TestSearcherFindsWhatIsInterleaved(t *testing.T) {
	dull := "[2026-11-30 17:06:05 TP3] Decode batch, #running-req: 17, #token: 1024, token usage: 0.17, 25 more\n"
	m, err := New([]string{"fired up and ready", "weight 98 end"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.literals {
		s := m.Searcher(never)
		s.AppendAll(nil, []byte(strings.Repeat(dull, 10)))
		for at := range dull {
			for _, text := range []string{dull[:at] + m.literals[i] + dull[at:], dull[:at] + m.literals[i] + dull[min(len(dull), at+len(m.literals[i])):]} {
				text = dull + text + dull
				if got := s.AppendAll(nil, []byte(text)); len(got) != 1 || got[0].Literal != i || got[0].Start != len(dull)+at {
					t.Fatalf("%q: %+v", text, got)
				}
			}
		}
	}
}

// Lines that differ in a number that is a part of what is searched for are
// searched each time.
func TestSearcherTellsNumbersApart(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "[2026-11-30 17:06:%02d] bind failed: [Errno %d] something about the address\n", i%60, i%100)
	}
	if got := searched(t, []string{"[Errno 98]"}, b.String()); len(got) != 3 {
		t.Errorf("%d, want 3", len(got))
	}
}

// Notes are one for all lines of a shape, and only where the numbers that keep
// asks for are the same in them.
func TestNotes(t *testing.T) {
	if !hasShapes {
		t.Skip("this processor has no shapes of lines")
	}
	m, err := New([]string{"Decode batch"})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Searcher(func(line []byte, at int) bool { return at > 0 && line[at-1] == 'P' })
	line := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i/10%6, i%10) }
	}
	tests := []struct {
		name string
		line func(i int) string
		want int // notes in a hundred lines; 0: hits without one
	}{
		{"a time", line("[17:06:%d%d] Decode batch, and more text to fill a vector\n"), 1},
		{"a rank", func(i int) string {
			return fmt.Sprintf("[17:06:05 TP%d] Decode batch, and more text to fill a vector\n", i%5)
		}, 5},
		{"a rank of two digits", line("[17:06:05 TP%d%d] Decode batch, and more text to fill a vector\n"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			for i := range 100 {
				b.WriteString(tt.line(i))
			}
			s.AppendAll(nil, []byte(b.String()))
			notes := map[*Note]bool{}
			hits := s.AppendAll(nil, []byte("\n"+b.String()+strings.Repeat(" ", vector)))
			for _, h := range hits {
				notes[h.Note] = true
			}
			if tt.want == 0 {
				delete(notes, nil)
			}
			if len(hits) != 100 || len(notes) != tt.want || notes[nil] {
				t.Errorf("%d hits, %d notes, want %d: %v", len(hits), len(notes), tt.want, notes)
			}
		})
	}
}

// The assembly says what this says.
func shapeOf(line []byte, before byte) string {
	out := bytes.Clone(line)
	for i, b := range line {
		if isDigit(b) && !keeps(before) {
			out[i] = '0'
		}
		before = b
	}
	return string(out)
}

func TestKeys(t *testing.T) {
	if !hasShapes {
		t.Skip("this processor has no shapes of lines")
	}
	r := rand.New(rand.NewPCG(5, 6))
	shapes, keys := map[string]key{}, map[key]string{}
	const alphabet = "0123456789=<>aZ~ /:\x00\xff\x80"
	for range 2000 {
		text := []byte{'\n'}
		for range 20 {
			for range r.IntN(70) {
				text = append(text, alphabet[r.IntN(len(alphabet))])
			}
			text = append(text, '\n')
		}
		// The same with other digits.
		other := bytes.Clone(text)
		for i, b := range other {
			if isDigit(b) && !keeps(text[i-1]) {
				other[i] = '0' + byte(r.IntN(10))
			}
		}
		for _, text := range [][]byte{text, other} {
			var lines [64]line
			at := 1
			for _, l := range lines[:nextLines(text, at, lines[:])] {
				if want := bytes.IndexByte(text[at:], '\n') + 1; l.n != want {
					t.Fatalf("%q: %d bytes, want %d", text[at:], l.n, want)
				}
				shape := shapeOf(text[at:at+l.n], text[at-1])
				if k, ok := shapes[shape]; ok && k != l.key {
					t.Fatalf("%q has two keys", shape)
				}
				if of, ok := keys[l.key]; ok && of != shape {
					t.Fatalf("%q and %q have one key", of, shape)
				}
				shapes[shape], keys[l.key] = l.key, shape
				at += l.n
			}
			if len(text)-at > vector+70 {
				t.Fatalf("%d bytes are left of %q", len(text)-at, text)
			}
		}
	}
	if len(shapes) < 10_000 {
		t.Errorf("only %d shapes", len(shapes))
	}
}

func FuzzSearcher(f *testing.F) {
	f.Add("Load weight end", "shard 12", "[TP0] Load weight end. elapsed=1.23 s, Load weight begin of 32\n", byte(3), uint16(20))
	f.Add("........", "0000", ".................0000000000000000000000000000\n", byte(9), uint16(0))
	f.Fuzz(func(t *testing.T, a, b, text string, digit byte, at uint16) {
		if min(len(a), len(b)) < Min || max(len(a), len(b)) > Max || strings.ContainsAny(a+b, "\n") {
			t.Skip()
		}
		// The text with one digit after the other, and with a string in it.
		other := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '0' + (r-'0'+rune(digit))%10
			}
			return r
		}, text)
		n := int(at) % (len(text) + 1)
		searched(t, []string{a, b}, strings.Repeat(text, 3)+other+text[:n]+a+text[n:]+text)
	})
}

// BenchmarkSearcher is the price of a text of known lines.
func BenchmarkSearcher(b *testing.B) {
	m, err := New(wanted)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for len(text) < 512<<10 {
		text = append(text, kind(r)...)
	}
	s := m.Searcher(never)
	b.SetBytes(int64(len(text)))
	var hits []Hit
	for b.Loop() {
		hits = s.AppendAll(hits[:0], text)
	}
}

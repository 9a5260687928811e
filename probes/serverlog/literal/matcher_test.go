package literal

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// naive finds the same by asking at every position.
func naive(literals []string, text string) []Hit {
	var hits []Hit
	for start := range len(text) {
		for i, l := range literals {
			if strings.HasPrefix(text[start:], l) {
				hits = append(hits, Hit{Literal: i, Start: start})
			}
		}
	}
	return hits
}

func find(t *testing.T, literals []string, text string) []Hit {
	t.Helper()
	m, err := New(literals)
	if err != nil {
		t.Fatal(err)
	}
	return m.AppendAll(nil, []byte(text))
}

func TestAppendAll(t *testing.T) {
	tests := []struct {
		name     string
		literals []string
		text     string
	}{
		{"nothing", []string{"Load weight end"}, "no such line here"},
		{"empty text", []string{"Load weight end"}, ""},
		{"whole text", []string{"Load weight end"}, "Load weight end"},
		{"at the start and at the end", []string{"weights"}, "weights and weights"},
		{"overlapping itself", []string{"........"}, strings.Repeat(".", 20)},
		{"one within another", []string{"weight end", "Load weight end", "weight"}, "x Load weight end y"},
		{"the same twice in the set", []string{"same line", "same line"}, "the same line"},
		{"short and long", []string{"abcd", "abcdefgh", "cdefghijkl"}, "zabcdefghijklabcd"},
		{"cut off", []string{"Load weight end"}, "Load weight en"},
		{"bytes that are no text", []string{"\x00\xff\xfe\x01"}, "a\x00\xff\xfe\x01b"},
		{"shorter than a block", []string{"abcd"}, "abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(naive(tt.literals, tt.text), find(t, tt.literals, tt.text)); diff != "" {
				t.Errorf("hits (-every position, +matcher):\n%s", diff)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, l := range []string{"", "abc", strings.Repeat("x", Max+1)} {
		if _, err := New([]string{"good enough", l}); err == nil {
			t.Errorf("New accepted a string of %d bytes", len(l))
		}
	}
}

// Texts over a small alphabet hold every kind of overlap.
func TestAppendAllRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return string(b)
	}
	for range 300 {
		literals := make([]string, 1+r.IntN(6))
		for i := range literals {
			literals[i] = word(Min + r.IntN(10))
		}
		text := word(r.IntN(60))
		if diff := cmp.Diff(naive(literals, text), find(t, literals, text)); diff != "" {
			t.Fatalf("%q in %q (-every position, +matcher):\n%s", literals, text, diff)
		}
	}
}

func FuzzAppendAll(f *testing.F) {
	f.Add("Load weight end", "weight", "[TP0] Load weight end. Load weight begin")
	f.Add("........", "....", ".................")
	f.Add("\x00\x00\x00\x00", "\xff\xff\xff\xff\xff", "\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		if min(len(a), len(b)) < Min || max(len(a), len(b)) > Max {
			t.Skip()
		}
		literals := []string{a, b}
		got := find(t, literals, text)
		if diff := cmp.Diff(naive(literals, text), got); diff != "" {
			t.Fatalf("%q in %q (-every position, +matcher):\n%s", literals, text, diff)
		}
		for i, l := range literals {
			has := false
			for _, h := range got {
				has = has || h.Literal == i
			}
			if has != strings.Contains(text, l) {
				t.Fatalf("%q in %q: found %v", l, text, has)
			}
		}
	})
}

// BenchmarkAppendAll is the price of a text that holds none of the strings.
func BenchmarkAppendAll(b *testing.B) {
	literals := make([]string, 200)
	r := rand.New(rand.NewPCG(1, 2))
	const words = "load weight begin end graph capture scheduler engine cache memory pool ready server rank shard kernel"
	for i := range literals {
		at := r.IntN(len(words) - 30)
		literals[i] = words[at:at+8+r.IntN(20)] + string(rune('A'+i%26))
	}
	m, err := New(literals)
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(strings.Repeat(usual, 1<<20/len(usual)))
	b.SetBytes(int64(len(text)))
	var hits []Hit
	for b.Loop() {
		hits = m.AppendAll(hits[:0], text)
	}
}

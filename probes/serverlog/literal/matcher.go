package literal

import (
	"cmp"
	"fmt"
	"slices"
)

// Min and Max are the lengths a string may have, in bytes.
const (
	Min = block
	Max = 512
)

// long is the length from which a string goes into the fast group. Strings
// below it make a pass of their own, with a shorter stride, so that one short
// string does not slow the search for all the long ones.
const long = 8

// Hit is one occurrence: which string, and where in the text it starts.
type Hit struct {
	Literal int
	Start   int
	// Note, of a Searcher's hit, is the same in all lines of a shape whose
	// digits the searcher keeps; nil where that is not known.
	Note *Note
}

// Note is where whoever searches keeps what it found out about a hit.
type Note struct{ Of any }

// Matcher finds a fixed set of strings. It is immutable and may be used from
// several goroutines.
type Matcher struct {
	groups   []*group
	literals []string
}

// New makes a matcher for these strings. Equal strings are found each under
// its own index. A string outside Min and Max is an error.
func New(literals []string) (*Matcher, error) {
	if len(literals) > 1<<16 {
		return nil, fmt.Errorf("%d strings, at most %d are possible", len(literals), 1<<16)
	}
	var short, rest []int
	for i, l := range literals {
		switch {
		case len(l) < Min || len(l) > Max:
			return nil, fmt.Errorf("string %q: %d bytes, must be %d to %d", l, len(l), Min, Max)
		case len(l) < long:
			short = append(short, i)
		default:
			rest = append(rest, i)
		}
	}
	m := &Matcher{literals: literals}
	for _, members := range [][]int{rest, short} {
		if len(members) > 0 {
			m.groups = append(m.groups, newGroup(literals, members))
		}
	}
	return m, nil
}

// AppendAll appends every occurrence of every string in text, overlapping ones
// too, ordered by start and then by index.
func (m *Matcher) AppendAll(dst []Hit, text []byte) []Hit {
	first := len(dst)
	for _, g := range m.groups {
		from := len(dst)
		dst = g.appendAll(dst, text)
		// One group's hits come nearly in order: they are out of it by less
		// than the length of a string.
		settle(dst[from:])
	}
	if len(m.groups) > 1 && !slices.IsSortedFunc(dst[first:], order) {
		slices.SortFunc(dst[first:], order)
	}
	return dst
}

func order(a, b Hit) int {
	if a.Start != b.Start {
		return cmp.Compare(a.Start, b.Start)
	}
	return cmp.Compare(a.Literal, b.Literal)
}

// settle sorts hits that are nearly sorted, by insertion.
func settle(hits []Hit) {
	for i := 1; i < len(hits); i++ {
		if hits[i].Start > hits[i-1].Start {
			continue
		}
		for j := i; j > 0 && order(hits[j], hits[j-1]) < 0; j-- {
			hits[j], hits[j-1] = hits[j-1], hits[j]
		}
	}
}

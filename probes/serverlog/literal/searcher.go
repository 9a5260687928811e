package literal

import (
	"bytes"
	"slices"
)

// Sizes of what a Searcher remembers, as powers of two: shapes, and keys that
// were met once. A shape has two places: with one, two shapes of the same place
// would drive each other out all the time.
const (
	shapeBits = 13
	onceBits  = 14
)

// maxNew is how many shapes are made in one text at most. It bounds what a log
// costs whose lines are all different.
const maxNew = 256

// useful is the part of a text that lines of known shapes must be for shapes to
// be a help, maxSkip how many texts in a row are searched without them when
// they are none.
const (
	useful  = 4
	maxSkip = 15
)

// Searcher finds what its Matcher finds, quicker in a text that has few kinds of
// line: it remembers lines by their shape, and what stands in them. It is not
// for use from several goroutines.
type Searcher struct {
	m *Matcher
	// numbered finds strings with digits, all of them zeros.
	numbered *Matcher
	keep     func(line []byte, at int) bool
	shapes   []known
	once     []uint32
	lines    [64]line // at hand
	made     int      // shapes, in the text at hand
	// useless texts in a row stand before the one at hand; skip are still to
	// be searched without shapes.
	useless, skip int
	zeroed        []byte
	hits, others  []Hit
}

// known is a shape under its key.
type known struct {
	key   key
	shape *shape
}

// Searcher makes a searcher without shapes. A number that begins at a position
// of a line, before one of its strings, and that keep says matters is the same
// in all lines that share a Note.
func (m *Matcher) Searcher(keep func(line []byte, at int) bool) *Searcher {
	s := &Searcher{m: m, keep: keep}
	if !hasShapes {
		return s
	}
	s.shapes, s.once = make([]known, 1<<shapeBits), make([]uint32, 1<<onceBits)
	var numbered []string
	for _, l := range m.literals {
		if z := zeroed(nil, []byte(l)); slices.ContainsFunc(z, isDigit) {
			numbered = append(numbered, string(z))
		}
	}
	// They are as long as those that New has taken.
	s.numbered, _ = New(numbered)
	return s
}

// AppendAll appends what Matcher.AppendAll appends. Strings with a newline in
// them are not found.
func (s *Searcher) AppendAll(dst []Hit, text []byte) []Hit {
	if !hasShapes {
		return s.m.AppendAll(dst, text)
	}
	if s.skip > 0 {
		s.skip--
		return s.m.AppendAll(dst, text)
	}
	s.made = 0
	// The first line may begin before the text, and a shape looks at the byte
	// before the line.
	at := bytes.IndexByte(text, '\n') + 1
	from, known := 0, 0 // from: beginning of the lines that have no known shape
	for at > 0 {
		// The processor finds the keys of several lines at once, but waits for
		// a key before it can look for its shape.
		lines := s.lines[:nextLines(text, at, s.lines[:])]
		if len(lines) == 0 {
			break
		}
		for i := range lines {
			n := lines[i].n
			if n <= maxLine {
				if sh := s.shape(text, at, n, &lines[i].key); sh != nil && !sh.unsure {
					if from < at {
						dst = s.search(dst, text, from, at)
					}
					for _, h := range sh.hits {
						h.Start += at
						dst = append(dst, h)
					}
					from = at + n
					known += n
				}
			}
			at += n
		}
	}
	if known >= len(text)/useful {
		s.useless = 0
	} else {
		s.useless = min(s.useless+1, 4)
		s.skip = min(1<<s.useless-1, maxSkip)
	}
	if from < len(text) {
		dst = s.search(dst, text, from, len(text))
	}
	return dst
}

// search appends what stands between two positions.
func (s *Searcher) search(dst []Hit, text []byte, from, to int) []Hit {
	first := len(dst)
	dst = s.m.AppendAll(dst, text[from:to])
	for i := range dst[first:] {
		dst[first+i].Start += from
	}
	return dst
}

// shape is the shape of the n bytes of a line at a position, nil if it has none
// that is known. A line whose key comes the second time gets one.
func (s *Searcher) shape(text []byte, at, n int, k *key) *shape {
	first := &s.shapes[k[0]>>(64-shapeBits)]
	if first.key == *k {
		return first.shape
	}
	second := &s.shapes[k[1]>>(64-shapeBits)]
	if second.key == *k {
		return second.shape
	}
	if once := &s.once[k[0]%(1<<onceBits)]; *once != uint32(k[1]) {
		*once = uint32(k[1])
		return nil
	}
	if s.made >= maxNew {
		return nil
	}
	s.made++
	free := first
	if first.shape != nil && second.shape == nil {
		free = second
	}
	*free = known{key: *k, shape: s.make(text[at:at+n], text[at-1])}
	return free.shape
}

// make makes the shape of a line.
func (s *Searcher) make(line []byte, before byte) *shape {
	s.zeroed = zeroed(s.zeroed[:0], line)
	s.others = s.numbered.AppendAll(s.others[:0], s.zeroed)
	for _, h := range s.others {
		if free(line, h.Start, h.Start+len(s.numbered.literals[h.Literal]), before) {
			return &shape{unsure: true}
		}
	}
	s.hits = s.m.AppendAll(s.hits[:0], line)
	return newShape(line, s.hits, s.keep)
}

package serverlog

import "encoding/binary"

// maxPrefix is the length up to which the prefix of a line is remembered, in
// bytes; maxRecent for how many prefixes of a signature.
const (
	maxPrefix = 128
	maxRecent = 16
)

// class tells digits from what makes the digits after it part of a name.
var class = func() (c [256]byte) {
	for b := range c {
		switch {
		case b >= '0' && b <= '9':
			c[b] = isNumber
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			c[b] = isAlpha | names
		case b == '_', b == '=':
			c[b] = names
		}
	}
	return c
}()

const (
	isNumber = 1 << iota
	isAlpha
	names
)

// named says whether the digits that begin at prefix[i] belong to a name: TP0,
// Worker_TP3, VllmWorker-0, rank=2. Other numbers differ from line to line.
func named(prefix []byte, i int) bool {
	return i > 0 && class[prefix[i-1]]&names != 0 ||
		i > 1 && prefix[i-1] == '-' && class[prefix[i-2]]&isAlpha != 0
}

// rankKey is prefix with the numbers that differ from line to line taken out.
// Lines of one process have few such keys.
func rankKey(dst, prefix []byte) []byte {
	for i := 0; i < len(prefix); {
		from := i
		for i < len(prefix) && class[prefix[i]]&isNumber == 0 {
			i++
		}
		dst = append(dst, prefix[from:i]...)
		from = i
		for i < len(prefix) && class[prefix[i]]&isNumber != 0 {
			i++
		}
		switch {
		case from == i:
		case named(prefix, from):
			dst = append(dst, prefix[from:i]...)
		default:
			dst = append(dst, '0')
		}
	}
	return dst
}

// recent are the last prefixes in front of one signature, and the marks they
// led to. A busy server writes the same line millions of times; comparing with
// the last such lines is quicker than taking one apart.
type recent struct {
	prefixes [maxRecent]prefix
	n, last  int
	oldest   int // is overwritten next, when all are in use
}

// prefix is one of them, padded to whole words.
type prefix struct {
	len   int
	words [maxPrefix / 8]uint64
	// mask has no bits where a number may differ: all decimal digits have the
	// same upper half.
	mask [maxPrefix / 8]uint64
	mark *mark
}

// find is the mark of a prefix that was seen lately, nil for none. Ranks often
// write in turn, so the one after the last is tried first.
func (r *recent) find(b []byte) *mark {
	for i := range r.n {
		j := r.last + 1 + i
		for j >= r.n {
			j -= r.n
		}
		if r.prefixes[j].equals(b) {
			r.last = j
			return r.prefixes[j].mark
		}
	}
	return nil
}

func (p *prefix) equals(b []byte) bool {
	if len(b) != p.len {
		return false
	}
	i := 0
	for ; len(b) >= 8; i++ {
		if !p.same(i, binary.LittleEndian.Uint64(b)) {
			return false
		}
		b = b[8:]
	}
	return len(b) == 0 || p.same(i, word(b))
}

// same compares one word: bytes must be equal, or both decimal digits where a
// number may differ. Of such a digit the upper half must be equal, and the
// lower one may not carry into it when six is added.
func (p *prefix) same(i int, w uint64) bool {
	const each = 0x0101010101010101
	return (w^p.words[i])&p.mask[i] == 0 && ((w&^p.mask[i])+each*6)&(each*0x10) == 0
}

// word is up to seven bytes as a word.
func word(b []byte) (w uint64) {
	for i, c := range b {
		w |= uint64(c) << (8 * i)
	}
	return w
}

// add remembers a prefix, in the place of the oldest if there are many.
func (r *recent) add(b []byte, m *mark) {
	p := &r.prefixes[r.oldest]
	if r.n < maxRecent {
		p = &r.prefixes[r.n]
		r.n++
	} else {
		r.oldest = (r.oldest + 1) % maxRecent
	}
	*p = prefix{len: len(b), mark: m}
	for i, c := range b {
		mask := byte(0xff)
		if class[c]&isNumber != 0 {
			from := i
			for from > 0 && class[b[from-1]]&isNumber != 0 {
				from--
			}
			if !named(b, from) {
				mask = 0xf0
			}
		}
		p.words[i/8] |= uint64(c) << (8 * (i % 8))
		p.mask[i/8] |= uint64(mask) << (8 * (i % 8))
	}
}

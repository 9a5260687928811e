package serverlog

import "encoding/binary"

// maxRecent is how many prefixes of a signature are compared with.
const maxRecent = 16

// recent are the last prefixes in front of one signature, and the marks they
// led to. A busy server writes the same line millions of times; comparing with
// the last such lines is quicker than taking one apart.
type recent struct {
	prefixes []prefix
	last     int // was found last
	oldest   int // is overwritten next, when there are maxRecent
}

// prefix is one of them, as it stands in the file, in whole words. The words
// are counted from its end, where the rank is; the last one is its first eight
// bytes, which may be compared twice.
type prefix struct {
	len   int
	words [maxPrefix / 8]uint64
	// mask has no bits where a number may differ: all decimal digits have the
	// same upper half.
	mask [maxPrefix / 8]uint64
	mark *mark
}

// find is the mark of a prefix that was seen lately and stands again in front
// of a position, from the beginning of a line on; nil for none. One process
// writes several lines, or ranks write in turn.
func (r *recent) find(buf []byte, at int) *mark {
	j := r.last
	for range r.prefixes {
		if p := &r.prefixes[j]; p.standsBefore(buf, at) {
			r.last = j
			return p.mark
		}
		if j++; j == len(r.prefixes) {
			j = 0
		}
	}
	return nil
}

func (p *prefix) standsBefore(buf []byte, at int) bool {
	from := at - p.len
	if from < 1 || !separates(buf[from-1]) || at < 8 {
		return false
	}
	if p.len < 8 {
		return p.same(0, firstWord(buf[:at], p.len))
	}
	i, n := at-8, 0
	for ; i > from; i, n = i-8, n+1 {
		if !p.same(n, binary.LittleEndian.Uint64(buf[i:])) {
			return false
		}
	}
	return p.same(n, binary.LittleEndian.Uint64(buf[from:]))
}

// same compares one word: bytes must be equal, or both decimal digits where a
// number may differ. Of such a digit the upper half must be equal, and the
// lower one may not carry into it when six is added.
func (p *prefix) same(i int, w uint64) bool {
	const each = 0x0101010101010101
	return (w^p.words[i])&p.mask[i] == 0 && ((w&^p.mask[i])+each*6)&(each*0x10) == 0
}

// firstWord is the last n bytes of b, at most eight, as a word; b has eight.
func firstWord(b []byte, n int) uint64 {
	return binary.LittleEndian.Uint64(b[len(b)-8:]) >> (8 * (8 - n))
}

// add remembers a prefix, in the place of the oldest if there are many. One that
// is known, such as that of the first line in the buffer, is not added again.
func (r *recent) add(b []byte, m *mark) {
	p := prefix{len: len(b), mark: m}
	var text, mask [maxPrefix + 8]byte // a word of NULs, and the prefix
	copy(text[8:], b)
	if r.find(text[:], 8+len(b)) != nil {
		return
	}
	fixed(mask[8:8+len(b)], b)
	word := func(n, end, bytes int) {
		p.words[n], p.mask[n] = firstWord(text[:8+end], bytes), firstWord(mask[:8+end], bytes)
	}
	n := 0
	for i := len(b); i > 8; i, n = i-8, n+1 {
		word(n, i, 8)
	}
	word(n, min(len(b), 8), min(len(b), 8))
	if len(b) < 8 {
		p.mask[n] |= ^uint64(0) << (8 * len(b))
	}
	if len(r.prefixes) < maxRecent {
		r.prefixes = append(r.prefixes, p)
		return
	}
	r.prefixes[r.oldest] = p
	r.oldest = (r.oldest + 1) % maxRecent
}

// fixed fills mask, as long as b: no bits of the lower half where a digit may
// be another one without a change of b's rankKey. A digit within an escape
// sequence may not.
func fixed(mask, b []byte) {
	var text [maxPrefix]byte
	var place [maxPrefix]int
	n := 0
	for i := 0; i < len(b); {
		mask[i] = 0xff
		if b[i] == 0x1b {
			for range escapeLen(b[i:]) {
				mask[i] = 0xff
				i++
			}
			continue
		}
		text[n], place[n] = b[i], i
		n++
		i++
	}
	for i := 0; i < n; {
		from := i
		for i < n && class[text[i]]&isNumber != 0 {
			i++
		}
		if from == i {
			i++
			continue
		}
		if !named(text[:], from) {
			for _, at := range place[from:i] {
				mask[at] = 0xf0
			}
		}
	}
}

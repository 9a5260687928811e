package serverlog

import "encoding/binary"

// maxRecent is how many prefixes of a signature are compared with. If there are
// more, only each replaceEvery-th of the others takes the place of an older one:
// if all did, none would stay until it comes again.
const (
	maxRecent    = 32
	replaceEvery = 8
)

// recent are the last prefixes in front of one signature, and the marks they
// led to. A busy server writes the same line millions of times; comparing with
// the last such lines is quicker than taking one apart.
type recent struct {
	prefixes []prefix
	last     int // was found last
	left     int // how many found no place
	oldest   int // is overwritten next, when there are maxRecent
}

// prefix is one of them, as it stands in the file.
type prefix struct {
	len int
	// words are counted from its end, where the rank is. The last one is its
	// first eight bytes, some of which are compared twice.
	words [maxPrefix / 8]word
	mark  *mark
}

// word is eight bytes of a prefix, or fewer at its front.
type word struct {
	bytes uint64
	// equal has the bits that must be equal, digit the lower halves of bytes
	// that may be any decimal digit: all of them have the same upper half.
	equal, digit uint64
}

// matches says whether eight bytes are the word. The lower half of a digit may
// not carry into the upper one when six is added.
func (w *word) matches(x uint64) bool {
	const each = 0x0101010101010101
	return (x^w.bytes)&w.equal == 0 && ((x&w.digit)+each*6)&(each*0x10) == 0
}

// find is the mark of a prefix that was seen lately and stands again in front
// of a position, from the beginning of a line on; nil for none. One process
// writes several lines, or ranks write in turn.
func (r *recent) find(buf []byte, at int) *mark {
	if at < 8 {
		return nil
	}
	end := binary.LittleEndian.Uint64(buf[at-8:])
	j := r.last
	for range r.prefixes {
		if p := &r.prefixes[j]; p.words[0].matches(end) && p.standsBefore(buf, at) {
			r.last = j
			return p.mark
		}
		if j++; j == len(r.prefixes) {
			j = 0
		}
	}
	return nil
}

// standsBefore compares all but the last word.
func (p *prefix) standsBefore(buf []byte, at int) bool {
	from := at - p.len
	if from < 1 || !separates(buf[from-1]) {
		return false
	}
	if p.len <= 8 {
		return true
	}
	n := 1
	for i := at - 16; i > from; i -= 8 {
		if !p.words[n].matches(binary.LittleEndian.Uint64(buf[i:])) {
			return false
		}
		n++
	}
	return p.words[n].matches(binary.LittleEndian.Uint64(buf[from:]))
}

// add remembers a prefix. One that is known, such as that of the first line in
// the buffer, is not added again.
func (r *recent) add(b []byte, m *mark) {
	if len(r.prefixes) == maxRecent {
		if r.left++; r.left%replaceEvery != 0 {
			return
		}
	}
	var text, equal, digit [8 + maxPrefix]byte // a word of NULs, and the prefix
	end := 8 + len(b)
	copy(text[8:], b)
	if r.find(text[:], end) != nil {
		return
	}
	fixed(equal[8:end], b)
	for i := range b {
		digit[8+i] = ^equal[8+i]
	}
	p := prefix{len: len(b), mark: m}
	set := func(n, at int) {
		p.words[n] = word{
			bytes: binary.LittleEndian.Uint64(text[at:]),
			equal: binary.LittleEndian.Uint64(equal[at:]),
			digit: binary.LittleEndian.Uint64(digit[at:]),
		}
	}
	set(0, end-8)
	if len(b) > 8 {
		n := 1
		for i := end - 16; i > 8; i -= 8 {
			set(n, i)
			n++
		}
		set(n, 8)
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

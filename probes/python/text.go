package python

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Most characters of a text that are kept.
const (
	maxFile = 512
	maxName = 200
)

// text reads a PyUnicodeObject, at most so many characters of it: "" if it
// cannot be read. Python has one, two or four bytes for each character, all
// alike in one text (PEP 393).
func (r *reader) text(at uint64, most uint64) string {
	if s, ok := r.texts[at]; ok {
		return s
	}
	s := r.readText(at, most)
	r.texts[at] = s
	return s
}

func (r *reader) readText(at, most uint64) string {
	if at == 0 || at%8 != 0 {
		return ""
	}
	head, err := r.mem.bytes(at, r.l.stringState+4)
	if err != nil {
		return ""
	}
	state := uint32(intAt(head, r.l.stringState)) >> r.l.stateKindShift
	kind, compact, ascii := uint64(state&7), state&8 != 0, state&16 != 0
	if !compact || kind != 1 && kind != 2 && kind != 4 {
		return ""
	}
	n := min(wordAt(head, r.l.stringLength), most)
	data := r.l.stringCompact
	if ascii {
		data = r.l.stringASCII
	}
	raw, err := r.mem.bytes(at+data, n*kind)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for ; uint64(len(raw)) >= kind; raw = raw[kind:] {
		c := rune(raw[0])
		switch kind {
		case 2:
			c = rune(binary.NativeEndian.Uint16(raw))
		case 4:
			c = rune(binary.NativeEndian.Uint32(raw))
		}
		b.WriteRune(printable(c))
	}
	return b.String()
}

// printable replaces what is no character, or would move the cursor of a
// terminal.
func printable(c rune) rune {
	if !utf8.ValidRune(c) || !unicode.IsPrint(c) {
		return utf8.RuneError
	}
	return c
}

// cstring reads a C string, at most 64 bytes of it; "" if it cannot be read.
func (r *reader) cstring(at uint64) string {
	var buf [64]byte
	if at == 0 {
		return ""
	}
	b := buf[:]
	if r.mem.read(at, b) != nil {
		if b = b[:16]; r.mem.read(at, b) != nil {
			return ""
		}
	}
	s, _, ended := strings.Cut(string(b), "\x00")
	if !ended {
		return ""
	}
	return s
}

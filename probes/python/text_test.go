package python

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// uncached can only be read a little at a time, so that nothing is kept.
type uncached struct{ m *image }

func (u uncached) Read(addr uint64, buf []byte) error {
	if len(buf) > pageBytes/2 {
		return errors.New("too much")
	}
	return u.m.Read(addr, buf)
}

func TestText(t *testing.T) {
	m := newImage(t, 12)
	r := &reader{mem: newMemory(uncached{m}, DefaultLimits), l: m.l}
	write := func(at uint64, kind int, ascii bool, chars ...uint32) {
		state := uint32(kind) | 8
		data := m.l.stringCompact
		if ascii {
			state |= 16
			data = m.l.stringASCII
		}
		m.word(at+m.l.stringLength, uint64(len(chars)))
		m.int(at+m.l.stringState, int32(state<<2))
		for i, c := range chars {
			var b [4]byte
			binary.NativeEndian.PutUint32(b[:], c)
			copy(m.bytes[at+data-imageBase+uint64(i*kind):], b[:kind])
		}
	}
	at := uint64(imageBase + 0x3000)
	for _, c := range []struct {
		kind  int
		ascii bool
		chars []uint32
		want  string
	}{
		{1, true, []uint32{'a', 'b'}, "ab"},
		{1, false, []uint32{0xe9, 'x'}, "éx"},
		{2, false, []uint32{0x3bb, 0xd800}, "λ\ufffd"},
		{4, false, []uint32{0x10437, 0x7fffffff}, "𐐷\ufffd"},
		{1, true, []uint32{0x1b, '[', '2', 'J', '\n'}, "\ufffd[2J\ufffd"},
		{2, false, []uint32{0x202e, 'a'}, "\ufffda"}, // turns the rest of the line round
		{3, false, []uint32{'a'}, ""},
		{1, true, nil, ""},
	} {
		write(at, c.kind, c.ascii, c.chars...)
		if got := r.readText(at, 100); got != c.want {
			t.Errorf("%x: %q, want %q", c.chars, got, c.want)
		}
	}
	m.text(at, strings.Repeat("x", 300))
	if got := r.readText(at, maxName); len(got) != maxName {
		t.Errorf("%d characters, want %d", len(got), maxName)
	}
	m.word(at+m.l.stringLength, 1<<62)
	if got := r.readText(at, maxName); len(got) != maxName {
		t.Errorf("%d characters of a length that cannot be", len(got))
	}
}

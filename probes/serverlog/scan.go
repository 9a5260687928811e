package serverlog

import (
	"bytes"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/whyhang/whyhang/probes/serverlog/literal"
)

// chunk is how much is read at once, in bytes. Reading larger pieces is no
// faster, mapping the file costs page faults and dies with SIGBUS when it is
// truncated.
const chunk = 1 << 20

// lineContext is how much of an endless line is kept from one chunk to the next,
// so that the rank named before a known string is still seen.
const lineContext = 4 << 10

// scanner reads one log. It can go on later from where it stopped.
type scanner struct {
	c *catalogue
	// offset is the first byte that is not done with; newlines are those
	// before it.
	offset, newlines int64
	// begun: the line that offset stands in has text before it.
	begun bool
	state *state
	// buf[from:have] are the bytes from offset on; what stands before from is
	// the beginning of the same line. It is part of the first of two buffers,
	// which take turns.
	buf        []byte
	from, have int
	buffers    [2][]byte
	chunk      int
	hits       []literal.Hit
	search     *halves
}

// result is what the log tells so far, a last line without newline included.
type result struct {
	state *state
	size  int64 // bytes read
	lines int64
	done  bool // to the end
}

// source is what a scanner reads from. seekData, if any, is the next offset
// that is no hole, or the end of the file.
type source struct {
	io.ReaderAt
	seekData func(from int64) (int64, error)
}

func newScanner(c *catalogue) *scanner {
	return &scanner{c: c, state: newState(), chunk: chunk, search: newHalves(c.matcher)}
}

// read reads on to the end of the source, or until the time is up (a zero time
// is never up).
func (s *scanner) read(src source, until time.Time) (result, error) {
	if s.buffers[0] == nil {
		s.buffers = [2][]byte{make([]byte, headroom+s.chunk), make([]byte, headroom+s.chunk)}
	}
	s.from, s.have = 0, 0
	next := &ahead{r: src, chunk: s.chunk, buf: s.buffers[1]}
	defer next.wait()
	for {
		buf, n, err := next.take(s.offset+int64(s.have-s.from), s.buf[:s.have], s.buffers[0])
		if err != nil && !errors.Is(err, io.EOF) {
			return result{}, err
		}
		s.buf, s.buffers[0], s.buffers[1] = buf, s.buffers[1], s.buffers[0]
		if n == s.chunk && allZero(s.buf[s.have:s.have+n]) {
			s.passHole(src)
			continue
		}
		s.have += n
		if s.state.first == nil && s.offset < 2*chunk {
			s.state.first = s.region(0).firstTime(s.c, s.from)
		}
		s.commit(s.whole())
		if errors.Is(err, io.EOF) {
			return s.end(), nil
		}
		if !until.IsZero() && time.Now().After(until) {
			return result{state: s.state.clone(), size: s.offset, lines: s.newlines}, nil
		}
	}
}

// region is what is in memory, up to cut.
func (s *scanner) region(cut int) *region {
	return &region{buf: s.buf[:s.have], from: s.from, cut: cut, base: s.offset - int64(s.from), line: s.newlines}
}

// whole is where the last whole piece of a line in the buffer ends. In an
// endless line it is a place in that line, far enough from the end for a known
// string to fit behind it.
func (s *scanner) whole() int {
	rest := s.buf[s.from:s.have]
	if i := bytes.LastIndexFunc(rest[max(0, len(rest)-maxPiece):], func(r rune) bool { return r < utf8.RuneSelf && separates(byte(r)) }); i >= 0 {
		return s.from + max(0, len(rest)-maxPiece) + i + 1
	}
	if len(rest) <= maxPiece {
		return s.from
	}
	return s.have - literal.Max
}

// commit finds the known lines up to cut and lets the buffer begin with the
// rest.
func (s *scanner) commit(cut int) {
	if cut > s.from {
		s.newlines, s.hits = s.region(cut).read(s.c, s.search, s.state, s.hits)
		s.offset += int64(cut - s.from)
		s.begun = s.lastBegun(s.buf[s.from:cut])
	}
	keep := cut
	if cut > 0 && !separates(s.buf[cut-1]) {
		keep = max(0, cut-lineContext)
	}
	s.buf, s.have, s.from = s.buf[keep:], s.have-keep, cut-keep
}

// end reads the last line, which may still grow, without keeping anything of
// it for a later read.
func (s *scanner) end() result {
	st := s.state.clone()
	lines, size := s.newlines, s.offset
	if rest := s.buf[s.from:s.have]; len(rest) > 0 {
		size += int64(len(rest))
		lines, s.hits = s.region(s.have).read(s.c, s.search, st, s.hits)
	}
	if s.lastBegun(s.buf[s.from:s.have]) {
		lines++
	}
	return result{state: st, size: size, lines: lines, done: true}
}

// lastBegun says whether there is text in the line that is unfinished behind b:
// anything but the NULs of a hole.
func (s *scanner) lastBegun(b []byte) bool {
	i := bytes.LastIndexByte(b, '\n')
	return i < 0 && s.begun || !onlyNUL(b[i+1:])
}

func onlyNUL(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// passHole finishes the line that stands before a chunk of NULs and goes on
// behind the hole the chunk lies in: it may be as long as the log once was.
func (s *scanner) passHole(src source) {
	s.have++ // the first NUL ends the line
	s.commit(s.have)
	s.offset += int64(s.chunk) - 1
	s.from, s.have = 0, 0
	if src.seekData == nil {
		return
	}
	// A file system that cannot tell is read on as it is.
	if next, err := src.seekData(s.offset); err == nil {
		s.offset = max(s.offset, next)
	}
}

func allZero(b []byte) bool {
	return b[0] == 0 && b[len(b)-1] == 0 && bytes.Count(b, []byte{0}) == len(b)
}

// firstTime is the first time stamp at or after a position, as far as the next
// 500 lines name one.
func (r *region) firstTime(c *catalogue, at int) *time.Time {
	rest := r.buf[at:]
	for range 500 {
		line, next, more := bytes.Cut(rest, newline)
		if len(line) > lineContext {
			line = line[:lineContext]
		}
		if t := c.timeBefore(stripped(line), ""); t != nil {
			return t
		}
		if !more {
			break
		}
		rest = next
	}
	return nil
}

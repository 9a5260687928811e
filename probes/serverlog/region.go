package serverlog

import (
	"bytes"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/serverlog/literal"
)

// region is a stretch of the log in memory.
type region struct {
	buf []byte
	// from to cut is what has not been looked at; what stands before from is
	// there for context only.
	from, cut int
	base      int64 // offset of buf[0] in the file
	line      int64 // newlines before buf[counted]
	counted   int
}

// piece is the part of a line that holds the hit at hand.
type piece struct {
	start, end int
	text       []byte // without escapes
	line       int64
	known      bool
	failure    int // position of what looks like an error, -1 for none
	// tried are the signatures whose pattern was applied, and, from -1 down,
	// the literals of failures; windows counts patterns applied to a part.
	tried   []int
	windows int
}

// maxWindows is how many parts of one piece patterns are applied to: a hostile
// line of megabytes may hold a literal a hundred thousand times.
const maxWindows = 1000

// read finds the known lines of a region and counts them in st. It returns the
// number of newlines before buf[cut].
func (r *region) read(c *catalogue, search *halves, st *state, hits []literal.Hit) (int64, []literal.Hit) {
	mute, traced := r.from, r.from
	if st.muted {
		mute = r.unmute(st, r.from)
	}
	if st.trace != nil {
		traced = st.follow(c, r, r.from, r.line+1)
	}
	hits = search.appendAll(hits[:0], r.buf[r.from:min(len(r.buf), r.cut+literal.Max)])
	r.counted = r.from
	p := piece{end: -1, failure: -1}
	again := -1 // position of the last hit that was only counted
	for _, h := range hits {
		at := r.from + h.Start
		if at >= r.cut {
			break
		}
		if at < mute {
			continue
		}
		m := &c.literals[h.Literal]
		if m.counted >= 0 && st.again(r, m.counted, at, h.Note) {
			again = at
			p.known = p.known || at < p.end
			continue
		}
		if at >= p.end {
			p.close(c, st, r)
			r.countTo(at)
			p = piece{line: r.line + 1, failure: -1, tried: p.tried[:0]}
			p.start, p.end = pieceAround(r.buf, at)
			p.text = stripped(r.buf[p.start:p.end])
			p.known = again >= p.start
		}
		switch {
		case m.prompt:
			st.muted = true
			mute = r.unmute(st, at)
		case m.trace:
			p.failure = -1
			if at >= traced && !st.muted {
				traced = r.trace(c, st, &p, at)
			}
		case m.failure && at >= traced && !slices.Contains(p.tried, -1-h.Literal):
			p.tried = append(p.tried, -1-h.Literal)
			if m.confirm == nil || m.confirm.Match(p.text) {
				p.failure = at - p.start
			}
		}
		for _, i := range m.signatures {
			r.signature(c, st, &p, i, at)
		}
	}
	p.close(c, st, r)
	st.keepLast(r)
	r.countTo(r.cut)
	return r.line, hits
}

var newline = []byte{'\n'}

// countTo counts newlines up to a position.
func (r *region) countTo(at int) {
	r.line += int64(bytes.Count(r.buf[r.counted:at], newline))
	r.counted = at
}

// unmute is the end of the line that holds at: a prompt lasts that long. A line
// that goes on past the region keeps st muted.
func (r *region) unmute(st *state, at int) int {
	end := pieceEnd(r.buf, at, r.cut)
	if end < r.cut {
		st.muted = false
	}
	return end
}

// signature counts a hit of a signature's literal at that position, if its
// pattern agrees.
func (r *region) signature(c *catalogue, st *state, p *piece, i, at int) {
	s := &c.signatures[i]
	switch {
	case s.pattern == nil:
		r.count(c, st, p, i, len(stripped(r.buf[p.start:at])), at, nil)
	case !r.whole(p):
		r.within(c, st, p, i, at)
	case !slices.Contains(p.tried, i):
		// A pattern finds all its matches in the line at once.
		p.tried = append(p.tried, i)
		for _, g := range s.pattern.FindAllSubmatchIndex(p.text, -1) {
			at := s.position(p.text, g)
			r.count(c, st, p, i, at, p.place(at), g)
		}
	}
}

// whole says whether a piece is all there, from separator to separator. If it is
// longer than is looked at, or cut by the border of the region, its parts are
// looked at more than once.
func (r *region) whole(p *piece) bool {
	return p.start >= r.from && (p.start == 0 || separates(r.buf[p.start-1])) &&
		p.end <= r.cut && (p.end == len(r.buf) || separates(r.buf[p.end]))
}

// within is signature for a piece that is not whole: only the match around this
// literal counts.
func (r *region) within(c *catalogue, st *state, p *piece, i, at int) {
	if p.windows++; p.windows > maxWindows {
		return
	}
	s := &c.signatures[i]
	lit := len(stripped(r.buf[p.start:at]))
	from := max(0, lit-literal.Max)
	for _, g := range s.pattern.FindAllSubmatchIndex(p.text[from:min(len(p.text), lit+4*literal.Max)], -1) {
		for n := range g {
			if g[n] >= 0 {
				g[n] += from
			}
		}
		if g[0] <= lit && lit < g[1] {
			r.count(c, st, p, i, lit, at, g)
			return
		}
	}
}

// place is where in the region position at of the piece's text stands, -1 if
// that is not known because of escapes.
func (p *piece) place(at int) int {
	if len(p.text) != p.end-p.start {
		return -1
	}
	return p.start + at
}

// count counts a hit of a signature at a position of the piece's text, which is
// place in the region.
func (r *region) count(c *catalogue, st *state, p *piece, i, at, place int, groups []int) {
	p.known = true
	offset := r.base + int64(p.start)
	if c.signatures[i].Kind == evidence.KindLaunch && st.launch(i, p.line, offset) {
		st.first = r.firstTime(c, p.start)
	}
	// A pattern that names the rank itself is asked each time.
	byPrefix := place >= 0 && c.signatures[i].rankGroup < 0
	var m *mark
	if byPrefix && groups != nil {
		m = st.met(r, i, place)
	}
	if m == nil {
		m = st.markFor(c, i, p.text, at, groups)
		if byPrefix {
			st.remember(i, r.buf[p.start:place], m)
		}
	}
	st.add(c, m, p.text, at, groups, p.line, offset)
}

// trace starts to follow a traceback whose first line is the piece.
func (r *region) trace(c *catalogue, st *state, p *piece, at int) int {
	column := len(stripped(r.buf[p.start:at]))
	st.trace = &trace{
		prefix: string(rankKey(nil, p.text[:column])), column: column,
		rank: c.rankBefore(p.text[max(0, column-maxRaw/4):column], ""),
		left: maxTrace, noise: isNoise(p.text),
	}
	return st.follow(c, r, min(p.end, r.cut), p.line)
}

// close keeps the line as an unknown error if it looked like one.
func (p *piece) close(c *catalogue, st *state, r *region) {
	if p.failure < 0 || p.known || isNoise(p.text) {
		return
	}
	at := len(stripped(r.buf[p.start : p.start+p.failure]))
	prefix := p.text[:at]
	st.errors.add(r.base+int64(p.start), evidence.Line{
		Number: p.line, At: c.timeBefore(prefix, ""), Rank: c.rankBefore(prefix[max(0, at-maxRaw/4):], ""), Text: clean(p.text, at),
	})
}

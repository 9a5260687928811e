package serverlog

import (
	"bytes"

	"github.com/whyhang/whyhang/probes/serverlog/literal"
)

// Most known lines of a large log are a few, again and again: a lock that is
// tried, a batch that is decoded, a request. If such a line needs no pattern and
// its prefix was seen lately, its rank is known without looking at the rest of
// it; and as hardly one of them is the last of its kind, what is kept of the
// last one is taken from the region when all of it was read.

// countEvery is how many bytes are gone through at most to find the number of a
// line that was only counted.
const countEvery = 16 << 10

// noted is what a hit's note holds: the mark that all hits in lines of one shape
// are counted at, as long as the state has not forgotten it.
type noted struct {
	st     *state
	memory int
	mark   *mark
}

// again counts a hit of a signature at a position of the region, if the line's
// prefix was seen lately.
func (st *state) again(r *region, signature, at int, note *literal.Note) bool {
	var m *mark
	if note != nil {
		if n, ok := note.Of.(*noted); ok && n.st == st && n.memory == st.memory {
			m = n.mark
		}
	}
	if m == nil {
		if m = st.met(r, signature, at); m == nil {
			return false
		}
		if note != nil {
			note.Of = &noted{st: st, memory: st.memory, mark: m}
		}
	}
	if at-r.counted > countEvery {
		r.countTo(at)
	}
	m.count++
	if m.late == 0 {
		st.late = append(st.late, m)
	}
	if m.samples != nil && m.samples.wants(m.count) {
		st.sampleAt(r, m, at)
	}
	m.late, m.lateFrom, m.lateLine = at, r.counted, r.line
	return true
}

// met is the mark of a signature whose known string stands at a position of the
// region, if the line's prefix was seen lately, nil else.
func (st *state) met(r *region, signature, at int) *mark {
	if signature >= len(st.recent) || st.recent[signature] == nil {
		return nil
	}
	return st.recent[signature].find(r.buf, at)
}

// remember makes met know the prefix of a line as it stands in the file.
func (st *state) remember(signature int, prefix []byte, m *mark) {
	if len(prefix) > maxPrefix {
		return
	}
	for len(st.recent) <= signature {
		st.recent = append(st.recent, nil)
	}
	if st.recent[signature] == nil {
		st.recent[signature] = &recent{}
	}
	st.recent[signature].add(prefix, m)
}

// keepLast keeps the last hits of a region that were only counted.
func (st *state) keepLast(r *region) {
	for _, m := range st.late {
		if m.late == 0 {
			continue // something behind it was kept already
		}
		start, end := pieceAround(r.buf, m.late)
		column := len(stripped(r.buf[start:m.late]))
		line := m.lateLine + int64(bytes.Count(r.buf[m.lateFrom:m.late], newline)) + 1
		m.setLast(stripped(r.buf[start:end]), column, line, r.base+int64(start))
	}
	clear(st.late)
	st.late = st.late[:0]
}

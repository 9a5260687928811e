package serverlog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxMarks limits how many marks are kept: a hostile log could name a new rank
// in every line.
const maxMarks = 4096

// maxRaw is how much of a line is kept, on either side of the known string,
// until it is known to be the last of its kind.
const maxRaw = 4096

// mark is a signature as seen so far, for one rank.
type mark struct {
	signature       int
	rank            string
	count, distinct int64
	progress        []byte // of the last hit
	first           evidence.Hit
	// last is the last hit, as it stood: reading its time and making its text
	// fit to keep is left for the end, as most hits are not the last.
	last raw
	// late is where in the region the last hit stands, if it is not in last
	// yet; 0: it is. lateLine newlines stand before position lateFrom.
	late, lateFrom int
	lateLine       int64
	samples        *samples // nil: none are kept
}

// setLast keeps the last hit.
func (m *mark) setLast(piece []byte, at int, line, offset int64) {
	m.last.set(piece, at, line, offset)
	m.late = 0
}

// raw is a line as it was matched, without escapes.
type raw struct {
	line, offset int64
	piece        []byte
	at           int // where in piece the known string stands
}

// set keeps a piece; the memory of the piece before is used again.
func (r *raw) set(piece []byte, at int, line, offset int64) {
	from, to := max(0, at-maxRaw), min(len(piece), at+maxRaw)
	r.line, r.offset = line, offset
	r.piece, r.at = append(r.piece[:0], piece[from:to]...), at-from
}

// hit makes a raw line a hit of the signature.
func (c *catalogue) hit(r *raw, signature int) evidence.Hit {
	s := &c.signatures[signature]
	piece, at := r.piece, r.at
	h := evidence.Hit{
		Line: r.line, Offset: r.offset, Text: clean(piece, at),
		At: c.timeBefore(piece[:at], s.Engine),
	}
	if s.pattern != nil {
		for _, g := range s.pattern.FindAllSubmatchIndex(piece, -1) {
			if g[0] <= at && at <= g[1] {
				h.Values = s.values(piece, g)
			}
		}
	}
	return h
}

// evidence is the mark in its final form.
func (m *mark) evidence(c *catalogue) evidence.Mark {
	s := &c.signatures[m.signature]
	e := evidence.Mark{
		Signature: s.ID, Engine: s.Engine, Phase: s.Phase, Kind: s.Kind,
		Rank: m.rank, Count: m.count, Distinct: m.distinct, First: m.first,
	}
	if m.count > 1 {
		last := c.hit(&m.last, m.signature)
		e.Last = &last
	}
	e.Series = m.series(c)
	return e
}

func (m *mark) clone() *mark {
	c := *m
	c.progress = bytes.Clone(m.progress)
	c.last.piece = bytes.Clone(m.last.piece)
	c.samples = m.samples.clone()
	return &c
}

// ends are the kinds after which a launch line begins another life of the
// server, whatever else stands between.
var ends = []evidence.Kind{evidence.KindEnd, evidence.KindReady, evidence.KindActivity, evidence.KindShutdown, evidence.KindFatal, evidence.KindConsequence, evidence.KindStall}

// belongsToLaunch says whether a mark may stand between two lines that announce
// one and the same launch.
func belongsToLaunch(s *evidence.Signature) bool {
	return s.Kind == evidence.KindLaunch || s.Phase == evidence.PhaseStarting && !slices.Contains(ends, s.Kind)
}

// rankOf is the rank of a hit: the one its line names, or the one its pattern
// found.
func (c *catalogue) rankOf(s *signature, piece []byte, at int, groups []int) string {
	if rank := c.rankBefore(piece[max(0, at-maxRaw/4):at], s.Engine); rank != "" || groups == nil {
		return rank
	}
	if i := s.rankGroup; i >= 0 && groups[2*i] >= 0 {
		return cutText(clean(piece[groups[2*i]:groups[2*i+1]], 0), maxRank)
	}
	return ""
}

// byAppearance orders marks by where they appear first.
func byAppearance(a, b evidence.Mark) int {
	if d := a.First.Offset - b.First.Offset; d != 0 {
		return int(max(-1, min(1, d)))
	}
	return strings.Compare(a.Signature, b.Signature)
}

package serverlog

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxPrefixes limits the memory of prefixes seen; it is forgotten when full.
const maxPrefixes = 8192

// state is what a log has told since its last launch.
type state struct {
	launches   int
	launchLine int64
	launchAt   int64        // offset of that line
	announced  map[int]bool // launch signatures seen since
	under      bool         // something else than the launch itself was seen since
	first      *time.Time
	marks      []*mark
	index      map[markKey]*mark
	// recent, by signature, and seen lead from the prefix of a line straight
	// to the mark.
	recent []*recent
	seen   map[string]*mark
	memory int     // how often all of this was forgotten
	late   []*mark // see again
	// sampled is how many marks keep samples.
	sampled int
	errors  errorLines
	trace   *trace
	muted   bool // the line goes on and is a prompt
	key     []byte
}

type markKey struct {
	signature int
	rank      string
}

func newState() *state {
	s := &state{}
	s.forget()
	return s
}

// forget drops everything that an earlier launch has left.
func (st *state) forget() {
	st.announced, st.under, st.first = map[int]bool{}, false, nil
	st.marks, st.index = nil, map[markKey]*mark{}
	st.recent, st.seen = nil, map[string]*mark{}
	st.sampled = 0
	st.memory++
}

// clone is a copy that can go on without changing the original.
func (st *state) clone() *state {
	c := *st
	c.announced, c.index, c.key = map[int]bool{}, map[markKey]*mark{}, nil
	c.recent, c.seen, c.late = nil, map[string]*mark{}, nil
	for i := range st.announced {
		c.announced[i] = true
	}
	c.marks = make([]*mark, len(st.marks))
	for i, m := range st.marks {
		c.marks[i] = m.clone()
		c.index[markKey{m.signature, m.rank}] = c.marks[i]
	}
	c.errors = st.errors.clone()
	if st.trace != nil {
		t := *st.trace
		c.trace = &t
	}
	return &c
}

// launch handles a launch line; it says whether the line starts a new life of
// the server. Engines announce one launch in several lines.
func (st *state) launch(signature int, line, offset int64) bool {
	again := st.launches > 0 && !st.under && !st.announced[signature]
	if !again {
		st.forget()
		st.errors.dropBefore(offset)
		st.launches++
		st.launchLine, st.launchAt = line, offset
	}
	st.announced[signature] = true
	return !again
}

// add counts a hit. piece is the line around it, at where it stands in piece.
func (st *state) add(c *catalogue, m *mark, piece []byte, at int, groups []int, line, offset int64) {
	s := &c.signatures[m.signature]
	if !belongsToLaunch(&s.Signature) {
		st.under = true
	}
	m.count++
	st.key = s.appendProgress(st.key[:0], piece, groups)
	if string(st.key) != string(m.progress) {
		if m.count > 1 {
			m.distinct++
		}
		m.progress = append(m.progress[:0], st.key...)
	}
	m.setLast(piece, at, line, offset)
	if m.samples != nil && m.samples.wants(m.count) {
		m.samples.add(m.count, piece, at, line)
	}
	if m.count == 1 {
		m.first = c.hit(&m.last, m.signature)
		if st.first == nil {
			st.first = m.first.At
		}
	}
}

// markFor finds or makes the mark of a signature and the rank the line names.
func (st *state) markFor(c *catalogue, signature int, piece []byte, at int, groups []int) *mark {
	s := &c.signatures[signature]
	// A pattern that names the rank itself is asked each time.
	if at > maxPrefix || s.rankGroup >= 0 {
		return st.markOf(c, signature, c.rankOf(s, piece, at, groups))
	}
	st.key = binary.LittleEndian.AppendUint16(st.key[:0], uint16(signature))
	st.key = rankKey(st.key, piece[:at])
	m := st.seen[string(st.key)]
	if m == nil {
		m = st.markOf(c, signature, c.rankOf(s, piece, at, groups))
		if len(st.seen) >= maxPrefixes {
			clear(st.seen)
		}
		st.seen[string(st.key)] = m
	}
	return m
}

// markOf finds or makes the mark of a signature and a rank.
func (st *state) markOf(c *catalogue, signature int, rank string) *mark {
	k := markKey{signature: signature, rank: rank}
	m := st.index[k]
	if m == nil && len(st.marks) >= maxMarks {
		k.rank = ""
		m = st.index[k]
	}
	if m == nil {
		m = &mark{signature: signature, rank: k.rank}
		st.index[k] = m
		st.marks = append(st.marks, m)
		st.sampleFrom(c, m)
	}
	return m
}

// into writes what the log has told into its evidence.
func (st *state) into(log *evidence.Log, c *catalogue) {
	log.Launches, log.LaunchLine, log.First = st.launches, st.launchLine, st.first
	for _, m := range st.marks {
		log.Marks = append(log.Marks, m.evidence(c))
	}
	slices.SortStableFunc(log.Marks, byAppearance)
	log.Errors = st.errors.lines()
}

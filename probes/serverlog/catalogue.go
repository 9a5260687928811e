package serverlog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/serverlog/literal"
)

// kept are the named groups of a pattern whose text is kept with a hit.
var kept = []string{"done", "total", "percent", "seconds", "bytes", "rank", "version", "port"}

// progress are those of them that tell progress when they change.
var progress = []string{"done", "total", "percent"}

// catalogue is all that is looked for in a log, made ready for searching.
type catalogue struct {
	signatures []signature
	formats    []format
	matcher    *literal.Matcher
	literals   []meaning
	// Times without a year or a zone are read with these.
	now  time.Time
	zone *time.Location
}

// signature is one known line.
type signature struct {
	evidence.Signature
	pattern   *regexp.Regexp // nil: the literal is enough
	rankGroup int            // of pattern, -1 for none
	series    *regexp.Regexp // nil: such lines hold no numbers to keep
}

// meaning is what the presence of a literal means.
type meaning struct {
	signatures []int
	prompt     bool
	trace      bool
	failure    bool
	confirm    *regexp.Regexp // of failure
	// counted is the signature of which a hit need only be counted once its
	// line's prefix was seen, see counted.go; -1 for none.
	counted int
}

// newCatalogue compiles signatures and formats. The first that is wrong is an
// error that names it.
func newCatalogue(signatures []evidence.Signature, formats []evidence.LineFormat, now time.Time, zone *time.Location) (*catalogue, error) {
	c := &catalogue{now: now, zone: zone}
	var literals []string
	index := map[string]int{}
	mean := func(l string) *meaning {
		i, ok := index[l]
		if !ok {
			i = len(literals)
			index[l] = i
			literals = append(literals, l)
			c.literals = append(c.literals, meaning{})
		}
		return &c.literals[i]
	}
	for i, s := range signatures {
		compiled := signature{Signature: s, rankGroup: -1}
		if slices.ContainsFunc([]byte(s.Literal), func(b byte) bool { return b < ' ' }) {
			return nil, fmt.Errorf("signature %s: control character in literal %q", s.ID, s.Literal)
		}
		if len(s.Literal) < literal.Min || len(s.Literal) > literal.Max {
			return nil, fmt.Errorf("signature %s: literal %q is %d bytes long, must be %d to %d", s.ID, s.Literal, len(s.Literal), literal.Min, literal.Max)
		}
		if s.Pattern != "" {
			var err error
			if compiled.pattern, err = regexp.Compile(s.Pattern); err != nil {
				return nil, fmt.Errorf("signature %s: %w", s.ID, err)
			}
			compiled.rankGroup = compiled.pattern.SubexpIndex("rank")
		}
		if s.Series != "" {
			var err error
			if compiled.series, err = regexp.Compile(s.Series); err != nil {
				return nil, fmt.Errorf("signature %s: series: %w", s.ID, err)
			}
		}
		c.signatures = append(c.signatures, compiled)
		m := mean(s.Literal)
		m.signatures = append(m.signatures, i)
	}
	for _, f := range formats {
		compiled, err := newFormat(f)
		if err != nil {
			return nil, err
		}
		c.formats = append(c.formats, compiled)
	}
	for _, p := range prompts {
		mean(p).prompt = true
	}
	mean(traceback).trace = true
	for _, f := range failures {
		m := mean(f.literal)
		m.failure, m.confirm = true, f.confirm
	}
	for i := range c.literals {
		c.literals[i].counted = c.countedAlone(&c.literals[i])
	}
	var err error
	c.matcher, err = literal.New(literals)
	return c, err
}

// countedAlone is the one signature a literal stands for, if a hit of it needs
// neither a pattern nor a look at its line; -1 for other literals.
func (c *catalogue) countedAlone(m *meaning) int {
	if len(m.signatures) != 1 || m.prompt || m.trace || m.failure {
		return -1
	}
	i := m.signatures[0]
	if s := &c.signatures[i]; s.pattern != nil || s.Kind == evidence.KindLaunch {
		return -1
	}
	return i
}

// found is one hit of a signature in a piece of a line.
type found struct {
	signature int
	at        int   // where in the piece
	groups    []int // submatch positions; nil without a pattern
}

// match finds the known lines in one piece, as region does in a whole file.
func (c *catalogue) match(piece []byte) []found {
	piece = stripped(piece)
	var all []found
	tried := map[int]bool{}
	for _, h := range c.matcher.AppendAll(nil, piece) {
		m := &c.literals[h.Literal]
		if m.prompt {
			break
		}
		for _, i := range m.signatures {
			s := &c.signatures[i]
			if s.pattern == nil {
				all = append(all, found{signature: i, at: h.Start})
				continue
			}
			if tried[i] {
				continue
			}
			tried[i] = true
			for _, g := range s.pattern.FindAllSubmatchIndex(piece, -1) {
				all = append(all, found{signature: i, at: s.position(piece, g), groups: g})
			}
		}
	}
	return all
}

// position is where the literal stands in a match of the pattern. The match may
// begin earlier, even before the prefix that names time and rank.
func (s *signature) position(piece []byte, groups []int) int {
	if i := bytes.Index(piece[groups[0]:], []byte(s.Literal)); i >= 0 {
		return groups[0] + i
	}
	return groups[0]
}

// values are the kept groups of a match, nil for none.
func (s *signature) values(piece []byte, groups []int) map[string]string {
	if s.pattern == nil || groups == nil {
		return nil
	}
	var v map[string]string
	for i, name := range s.pattern.SubexpNames() {
		if i == 0 || name == "" || groups[2*i] < 0 || !slices.Contains(kept, name) {
			continue
		}
		if v == nil {
			v = map[string]string{}
		}
		v[name] = clean(piece[groups[2*i]:groups[2*i+1]], 0)
	}
	return v
}

// appendProgress appends the groups that tell progress; if the pattern of a
// progress line has none of them, all of its match, such as a row of dots.
func (s *signature) appendProgress(dst, piece []byte, groups []int) []byte {
	if s.pattern == nil || groups == nil {
		return dst
	}
	before := len(dst)
	for i, name := range s.pattern.SubexpNames() {
		if i > 0 && groups[2*i] >= 0 && slices.Contains(progress, name) {
			dst = append(append(dst, piece[groups[2*i]:groups[2*i+1]]...), '/')
		}
	}
	if len(dst) == before && s.Kind == evidence.KindProgress {
		dst = append(dst, piece[groups[0]:min(groups[1], groups[0]+maxText)]...)
	}
	return dst
}

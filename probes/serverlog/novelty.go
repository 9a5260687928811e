package serverlog

import (
	"bytes"
	"regexp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// remembered is how many different lines are told from new ones.
const remembered = 2048

// maxNormal is how much of a line counts for telling it from others, in bytes.
const maxNormal = 240

// novelty tells new content from lines that come again and again. Nothing in
// it but what a line says decides: a lock that is tried for the eight hundredth
// time is not progress, a bar at another percentage is.
type novelty struct {
	c    *catalogue
	seen map[string]bool
	ring []string
	next int
	// counts are the last values of each thing that tells progress.
	counts map[string]string
}

func newNovelty(c *catalogue) *novelty {
	return &novelty{c: c, seen: map[string]bool{}, ring: make([]string, remembered), counts: map[string]string{}}
}

// bars is the shape of a progress bar, tqdm's and that of the weight loaders:
// "what:  45%|####  | 9/20 [00:10<…" and "what:  45% Completed | 9/20 [00:10<…".
var bars = regexp.MustCompile(`^(.*?):?\s*(\d+)%(?:\|| Completed).*?(\d+/\d+) \[`)

// isNew says whether a piece of a line says something new, and remembers it;
// busy whether it is about requests being served.
func (n *novelty) isNew(p []byte) (isNew, busy bool) {
	p = bytes.TrimSpace(stripped(p))
	if len(p) == 0 {
		return false, false
	}
	if len(p) > maxPiece {
		p = p[:maxPiece]
	}
	idle, phase := false, false
	for _, f := range n.c.match(p) {
		s := &n.c.signatures[f.signature]
		switch s.Kind {
		case evidence.KindProgress:
			key := s.ID + "\x00" + n.c.rankOf(s, p, f.at, f.groups)
			return n.moved(key, string(s.appendProgress(nil, p, f.groups))), busy
		case evidence.KindHeartbeat, evidence.KindRetry:
			idle = true
		case evidence.KindActivity:
			busy = true
		case evidence.KindLaunch, evidence.KindBegin, evidence.KindEnd, evidence.KindReady, evidence.KindFatal, evidence.KindShutdown:
			phase = true
		}
	}
	switch {
	case phase:
		// Ranks say the same one after the other; each is news.
		return true, busy
	case idle:
		return false, busy
	}
	if g := bars.FindSubmatch(p); g != nil {
		return n.moved(string(normal(g[1])), string(g[2])+"%"+string(g[3])), busy
	}
	return n.remember(string(normal(p))), busy
}

// moved says whether the values of a thing have changed. A map that grows
// without end starts again: at worst one bar is news once more.
func (n *novelty) moved(key, values string) bool {
	old, known := n.counts[key]
	if len(n.counts) >= remembered && !known {
		clear(n.counts)
	}
	n.counts[key] = values
	return !known || old != values
}

// remember says whether a normalised line is not among the last ones.
func (n *novelty) remember(line string) bool {
	if n.seen[line] {
		return false
	}
	delete(n.seen, n.ring[n.next])
	n.ring[n.next] = line
	n.next = (n.next + 1) % len(n.ring)
	n.seen[line] = true
	return true
}

// normal is a line without what differs each time it is written: numbers,
// hexadecimal numbers, and with them times, addresses and UUIDs, and how often a
// mark stands in a row (dots that grow). A short number at the end of a word is
// part of a name (TP0, layer12) and stays.
func normal(p []byte) []byte {
	out := make([]byte, 0, min(len(p), maxNormal))
	for i := 0; i < len(p) && len(out) < maxNormal; {
		j := i
		for j < len(p) && isWord(p[j]) {
			j++
		}
		if j == i {
			if len(out) == 0 || p[i] >= 0x80 || out[len(out)-1] != p[i] {
				out = append(out, p[i])
			}
			i++
			continue
		}
		if n := uuid(p[i:]); n > 0 {
			out = append(out, '#')
			i += n
			continue
		}
		out = append(out, normalWord(p[i:j])...)
		i = j
	}
	return out
}

// uuid is the length of a UUID in its usual form (RFC 9562) at the beginning of
// p, 0 if there is none: its groups are too short to be told from words.
func uuid(p []byte) int {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(p) < len(form) {
		return 0
	}
	for i := range len(form) {
		b := p[i]
		if form[i] == '-' && b != '-' || form[i] != '-' && !isDigit(b) && (b|0x20 < 'a' || b|0x20 > 'f') {
			return 0
		}
	}
	if len(p) > len(form) && isWord(p[len(form)]) {
		return 0
	}
	return len(form)
}

func isWord(b byte) bool { return class[b]&(isAlpha|isNumber) != 0 || b == '_' }

func isDigit(b byte) bool { return class[b]&isNumber != 0 }

// normalWord is "#" for a word that is a number, or looks like a hexadecimal
// one: six digits or more with a decimal digit among them.
func normalWord(w []byte) []byte {
	hex, digits := true, 0
	for i, b := range w {
		if isDigit(b) {
			digits++
		} else if !(b|0x20 >= 'a' && b|0x20 <= 'f') && !(i == 1 && b|0x20 == 'x' && w[0] == '0') {
			hex = false
		}
	}
	switch {
	case digits == 0:
		return w
	case isDigit(w[0]), hex && len(w) >= 6, digits > 4:
		return []byte{'#'}
	}
	return w
}

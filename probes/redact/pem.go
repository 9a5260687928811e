package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Private keys in their armour: RFC 7468 (64 characters a line), OpenSSH's (70)
// and OpenPGP's (RFC 9580), with newlines or with \n in one line.
var (
	keyBegin = regexp.MustCompile(`---- ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-----?`)
	keyClose = regexp.MustCompile(`---- ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-----?`)
	// keyRest is a key whose beginning was cut off.
	keyRest = regexp.MustCompile(`(?:[A-Za-z0-9+/=]{4,}(?:\\r|\\n|\s)+)*[A-Za-z0-9+/=]+(?:\\r|\\n|\s)*(-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)`)
	// keyBody are lines of such a key without either end.
	keyBody = regexp.MustCompile(`(?:[A-Za-z0-9+/]{60,76}(?:\\r)?(?:\\n|\r?\n)[ \t]*){2,}[A-Za-z0-9+/=]*`)
)

// privateKeys replaces the bodies of private keys in a text.
func privateKeys(s string) string {
	if strings.Contains(s, "PRIVATE KEY") {
		s = armoured(s)
		s = keyRest.ReplaceAllString(s, marker+"${1}")
	}
	if len(s) < 122 || strings.IndexByte(s, '\n') < 0 && !strings.Contains(s, `\n`) {
		return s
	}
	return keyBody.ReplaceAllStringFunc(s, func(found string) string {
		// A long word may stand on the line above the key.
		if slices.ContainsFunc(strings.Split(strings.ReplaceAll(found, `\n`, "\n"), "\n"), isKeyText) {
			return marker
		}
		return found
	})
}

// armoured replaces what stands between BEGIN and END, or the end of the text.
func armoured(s string) string {
	var out strings.Builder
	for {
		b := keyBegin.FindStringIndex(s)
		if b == nil {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:b[1]])
		if s = s[b[1]:]; strings.HasPrefix(s, marker) {
			continue
		}
		out.WriteString(marker)
		if e := keyClose.FindStringIndex(s); e != nil {
			s = s[e[1]:]
		} else {
			s = ""
		}
	}
}

// isKeyText tells random base64 from a checksum or a long word.
func isKeyText(s string) bool {
	lower, upper, digit := kinds(s)
	return lower > 4 && upper > 4 && (digit > 0 || strings.ContainsAny(s, "+/"))
}

// maxKeyLines is how many lines a private key may have: RSA of 16,384 bits has
// some 200.
const maxKeyLines = 400

// keyLine is what one line may be of a private key.
type keyLine struct {
	begin, end bool
	word       string // the last word, if it is base64
	alone      bool   // nothing stands before it
	full       bool   // it is as long as whole lines of keys are
}

// KeyLines says which of the lines are the body of a private key, so that they
// have to go as a whole: a log has each on a line of its own, maybe with the
// log's prefix, other lines in between, and its beginning or end out of sight.
func KeyLines(lines []string) []bool {
	keys := make([]bool, len(lines))
	seen := make([]keyLine, len(lines))
	for i, line := range lines {
		seen[i] = keyLineOf(line)
	}
	left := 0
	for i, l := range seen {
		switch {
		case l.begin:
			left = maxKeyLines
		case l.end:
			left = 0
		case left > 0:
			left--
			keys[i] = l.inBody()
		}
	}
	for i, l := range slices.Backward(seen) {
		switch {
		case l.end:
			left = maxKeyLines
		case l.begin:
			left = 0
		case left > 0:
			left--
			keys[i] = keys[i] || l.full || l.alone && l.word != "" && isEdge(seen, keys, i)
		}
	}
	for i, l := range seen {
		near := i > 0 && seen[i-1].full || i+1 < len(seen) && seen[i+1].full
		keys[i] = keys[i] || l.full && near
	}
	for i, l := range seen {
		// Its last line is shorter; its first one may have been cut.
		last := i > 0 && keys[i-1] && seen[i-1].full && len(l.word)%4 == 0 && isMixed(l.word)
		first := i == 0 && len(seen) > 1 && keys[1] && seen[1].full
		keys[i] = keys[i] || l.alone && l.word != "" && (last || first)
	}
	return keys
}

// isEdge says whether line i stands right above the end of a key, or of the
// rest of one.
func isEdge(seen []keyLine, keys []bool, i int) bool {
	return i+1 < len(seen) && (seen[i+1].end || keys[i+1])
}

// inBody says whether a line below BEGIN belongs to the key: the log's own
// lines, such as "ready", may come in between.
func (l *keyLine) inBody() bool {
	return l.alone && (len(l.word) >= 16 || isMixed(l.word)) || len(l.word) >= 40
}

func keyLineOf(line string) keyLine {
	line = strings.TrimSpace(line)
	l := keyLine{}
	if strings.Contains(line, "PRIVATE KEY") {
		b, e := keyBegin.FindStringIndex(line), keyClose.FindStringIndex(line)
		l.begin = b != nil && (e == nil || e[0] < b[0])
		l.end = e != nil && !l.begin
		return l
	}
	word := line[strings.LastIndexAny(line, " \t")+1:]
	if word == "" || runEnd(word, 0, len(word), "+/=") < len(word) {
		return l
	}
	l.word, l.alone = word, len(word) == len(line)
	l.full = len(word) >= 60 && len(word) <= 76 && isKeyText(word)
	return l
}

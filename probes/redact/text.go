package redact

import (
	"slices"
	"strings"
)

// place is where a text stands: names that are only likely to name a secret
// weigh more in a command line than in a log, whose keys and tokens are mostly
// harmless.
type place int

const (
	inLog place = iota
	inArgument
)

// String returns free text (a log line, an HTTP body) without the secrets in
// it.
func String(s string) string { return settle(s, inLog) }

// maxPasses limits how often a text is gone over.
const maxPasses = 8

// settle redacts until nothing changes any more: what stands next to a secret
// may come to light only when the secret is gone. A text that does not settle
// is nobody's log line.
func settle(s string, in place) string {
	for range maxPasses {
		next := byName(byShape(s), in)
		if next == s {
			return s
		}
		s = next
	}
	return marker
}

// maxName limits how far back a name is looked for.
const maxName = 80

// stems are parts of every name that weighs anything: a text without any of
// them needs no closer look.
var stems = []string{"key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "sig", "jwt", "bearer"}

// holdsStem also takes what holds the short names "pw" and "pat" as a last
// word; weighWord knows them.
func holdsStem(s string) bool {
	lower := strings.ToLower(s)
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.Contains(lower, stem) }) ||
		strings.HasSuffix(lower, "pw") || strings.HasSuffix(lower, "_pat") || strings.HasSuffix(lower, "-pat")
}

// mayHoldNames says whether a closer look is worth it. Query parameters have
// names of their own.
func mayHoldNames(s string) bool {
	return strings.IndexByte(s, '?') >= 0 || holdsStem(s) ||
		strings.Contains(s, "pw=") || strings.Contains(s, "PW=") || strings.Contains(s, "PAT=")
}

// byName replaces the values that stand under telling names, in the forms
// name=value, name: value, "name": "value", --name value, ("name", "value")
// and <name>value<.
func byName(s string, in place) string {
	if !mayHoldNames(s) {
		return s
	}
	var out strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		from, to, ok := valueAt(s, i, in)
		if !ok {
			i++
			continue
		}
		out.WriteString(s[kept:from])
		out.WriteString(marker)
		kept, i = to, max(to, i+1)
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// valueAt looks at byte i of s: if it separates a name from a value that has
// to go, from and to are the value's ends.
func valueAt(s string, i int, in place) (from, to int, ok bool) {
	switch c := s[i]; {
	case c == '=' || c == ':':
		return pairAt(s, i, in)
	case c == '%' && i+2 < len(s) && s[i+1] == '3' && (s[i+2] == 'D' || s[i+2] == 'd' || s[i+2] == 'A' || s[i+2] == 'a'):
		return pairAt(s, i, in) // = or : within a URL
	case c == ',' && i > 0 && isQuote(s[i-1]):
		return tupleAt(s, i)
	case c == '>' && i > 0 && isNameByte(s[i-1]):
		return elementAt(s, i)
	case c == '-' && (i == 0 || isSpace(s[i-1]) || isQuote(s[i-1])):
		return optionAt(s, i, in)
	}
	return 0, 0, false
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isNameByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

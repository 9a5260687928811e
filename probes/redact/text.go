package redact

import (
	"slices"
	"strings"
)

// String returns free text (a log line, an HTTP body, a process title) without
// the secrets in it.
func String(s string) string {
	return byName(byShape(s))
}

// maxName limits how far back a name is looked for.
const maxName = 80

// stems are parts of every name that weighs anything: a text without any of
// them needs no closer look.
var stems = []string{"key", "token", "secret", "pass", "pwd", "cred", "auth", "cookie", "sig"}

func holdsStem(s string) bool {
	lower := strings.ToLower(s)
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.Contains(lower, stem) })
}

// byName replaces the values that stand under telling names, in the forms
// name=value, name: value, "name": "value" and --name value.
func byName(s string) string {
	if !holdsStem(s) {
		return s
	}
	var out strings.Builder
	kept := 0
	for i := 0; i < len(s); {
		from, to, ok := valueAt(s, i)
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
func valueAt(s string, i int) (from, to int, ok bool) {
	switch c := s[i]; {
	case c == '=' || c == ':':
		return pairAt(s, i)
	case c == '-' && (i == 0 || isSpace(s[i-1]) || s[i-1] == '\'' || s[i-1] == '"' || s[i-1] == '`'):
		return optionAt(s, i)
	}
	return 0, 0, false
}

// pairAt is for name=value and name: value with the separator at i.
func pairAt(s string, i int) (from, to int, ok bool) {
	name := nameBefore(s, i)
	w := weigh(name)
	if w == harmless {
		return 0, 0, false
	}
	from, to = valueFor(w, s, skipSpaces(s, i+1))
	if words := split(name); slices.Contains(words, "authorization") {
		from, to = credentials(s, from, to)
	} else if words[len(words)-1] == "cookie" {
		to = lineEnd(s, from)
	}
	// An option is as good as an argument, wherever it is written.
	inText := s[i] == ':' || !strings.HasPrefix(name, "-")
	if !hides(w, s[from:to], inText) {
		return 0, 0, false
	}
	return from, max(to, wholeValue(s, from, to)), true
}

// optionAt is for --name value with the first dash at i.
func optionAt(s string, i int) (from, to int, ok bool) {
	start := i
	for i < len(s) && s[i] == '-' {
		i++
	}
	end := i
	for end < len(s) && isNameByte(s[end]) && end-i < maxName {
		end++
	}
	if end == i || end == len(s) || s[end] != ' ' {
		return 0, 0, false
	}
	name := s[start:end]
	w := weigh(name)
	if w == harmless || isSwitch(name) {
		return 0, 0, false
	}
	from, to = valueFor(w, s, skipSpaces(s, end))
	value := s[from:to]
	if strings.HasPrefix(value, "-") || slices.Contains(smallWords, strings.ToLower(value)) || !hides(w, value, false) {
		return 0, 0, false
	}
	return from, max(to, wholeValue(s, from, to)), true
}

// smallWords follow the name of an option in a sentence about it.
var smallWords = []string{"to", "or", "and", "is", "in", "for", "was", "not", "the", "with", "if", "has", "must", "should", "option", "flag"}

// nameBefore is the name that ends before the separator at i, with its dashes
// and without quotes.
func nameBefore(s string, i int) string {
	end := i
	for end > 0 && i-end < 3 && (s[end-1] == ' ' || s[end-1] == '"' || s[end-1] == '\'') {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && isNameByte(s[start-1]) {
		start--
	}
	return s[start:end]
}

// maxUnsure limits how much of a value is looked at under a name that may turn
// out harmless: without a limit a hostile text of such names takes time
// quadratic in its length. Values under certain names always go, so that the
// scan moves on behind them.
const maxUnsure = 512

func valueFor(w weight, s string, i int) (from, to int) {
	if w < certain && len(s)-i > maxUnsure {
		s = s[:i+maxUnsure]
	}
	return valueFrom(s, i)
}

// wholeValue is the true end of a value that was found with the limit on.
func wholeValue(s string, from, to int) int {
	if to-from < maxUnsure-1 {
		return to
	}
	_, to = valueFrom(s, from)
	return to
}

// valueFrom is the value that begins at i: quoted, a list, or up to the next
// space or punctuation.
func valueFrom(s string, i int) (from, to int) {
	if i >= len(s) {
		return len(s), len(s)
	}
	switch c := s[i]; c {
	case '"', '\'':
		for j := i + 1; j < len(s); j++ {
			if s[j] == '\\' {
				j++
			} else if s[j] == c {
				return i + 1, j
			}
		}
		return i + 1, len(s) // cut off before its end
	case '[':
		if j := strings.IndexByte(s[i:], ']'); j >= 0 {
			return i, i + j + 1
		}
		return i, lineEnd(s, i)
	}
	to = i
	for to < len(s) && !isSpace(s[to]) && !endsValue(s[to]) {
		to++
	}
	return i, to
}

// credentials steps over the scheme of an Authorization header.
func credentials(s string, from, to int) (int, int) {
	switch strings.ToLower(s[from:to]) {
	case "basic", "bearer", "token", "digest", "negotiate", "apikey":
		return valueFrom(s, skipSpaces(s, to))
	}
	// A quoted header value holds scheme and token.
	if scheme, rest, ok := strings.Cut(s[from:to], " "); ok && rest != "" {
		return from + len(scheme) + 1, to
	}
	return from, to
}

func lineEnd(s string, i int) int {
	if j := strings.IndexAny(s[i:], "\r\n\"'"); j >= 0 {
		return i + j
	}
	return len(s)
}

func skipSpaces(s string, i int) int {
	for n := 0; i < len(s) && n < 4 && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0 }

func endsValue(c byte) bool {
	switch c {
	case '"', '\'', ',', ';', '&', ')', '}', ']', '<', '>', '|':
		return true
	}
	return false
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

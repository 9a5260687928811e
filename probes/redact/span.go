package redact

import "strings"

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

// wholeValue is the true end of a value: that was found with the limit on, or
// that goes on behind a punctuation mark in it, as passwords do.
func wholeValue(s string, from, to int) int {
	if to-from >= maxUnsure-1 {
		_, to = valueFrom(s, from)
	}
	if from > 0 && isQuote(s[from-1]) && to < len(s) && s[to] == s[from-1] && (to+1 == len(s) || !isLetter(s[to+1]) && !isDigit(s[to+1])) {
		return to
	}
	for to < len(s) && !isSpace(s[to]) && goesOn(s, to) {
		to++
		for to < len(s) && !isSpace(s[to]) && !endsValue(s[to]) {
			to++
		}
	}
	return to
}

// goesOn says whether a value goes on behind the punctuation mark at i: what
// follows is neither the end of a word nor another name.
func goesOn(s string, i int) bool {
	if i+1 >= len(s) || !endsValue(s[i]) {
		return i+1 < len(s) && !isSpace(s[i])
	}
	next := s[i+1]
	switch s[i] {
	case ',', ';', '&':
		end := i + 1
		for end < len(s) && end-i < maxName && isNameByte(s[end]) {
			end++
		}
		named := end < len(s) && (s[end] == '=' || s[end] == ':')
		return !named && (isLetter(next) || isDigit(next))
	case '"', '\'', ')', ']', '}':
		return isLetter(next) || isDigit(next)
	}
	return false
}

// valueFrom is the value that begins at i: quoted, a list or object, or up to
// the next space or punctuation mark.
func valueFrom(s string, i int) (from, to int) {
	if i >= len(s) {
		return len(s), len(s)
	}
	// b'…' and \"…\" are quoted as well.
	q := i
	for q < len(s) && q-i < 2 && strings.IndexByte("bBrRuUfF", s[q]) >= 0 {
		q++
	}
	if q == len(s) || s[q] != '"' && s[q] != '\'' {
		q = i
	}
	escapes := 0
	for q+escapes < len(s) && escapes < 8 && s[q+escapes] == '\\' {
		escapes++
	}
	if at := q + escapes; at < len(s) && (s[at] == '"' || s[at] == '\'') {
		return at + 1, quoteEnd(s, at+1, s[at], escapes)
	}
	if isOpening(s[i]) {
		return i, bracketEnd(s, i)
	}
	to = i
	for to < len(s) && !isSpace(s[to]) && !endsValue(s[to]) {
		to++
	}
	return i, to
}

func isOpening(c byte) bool { return c == '[' || c == '{' }

// quoteEnd is where the text in quotes ends that begins at i. Its quotes have
// that many backslashes; one with more belongs to the text.
func quoteEnd(s string, i int, quote byte, escapes int) int {
	for j, run := i, 0; j < len(s); j++ {
		switch {
		case s[j] == '\\':
			run++
			continue
		case s[j] == quote && (run == escapes || escapes > 0 && run < escapes || escapes == 0 && run%2 == 0):
			return max(i, j-min(run, escapes))
		}
		run = 0
	}
	return len(s) // cut off before its end
}

// bracketEnd is the end of the list or object that begins at i, or of the text.
// Brackets in quotes do not count, unless the quotes do not match.
func bracketEnd(s string, i int) int {
	for _, quoted := range []bool{true, false} {
		depth := 0
		for j := i; j < len(s); j++ {
			switch c := s[j]; {
			case c == '\\':
				j++
			case quoted && (c == '"' || c == '\''):
				j = quoteEnd(s, j+1, c, 0)
			case isOpening(c):
				depth++
			case c == ']' || c == '}':
				if depth--; depth == 0 {
					return j + 1
				}
			}
		}
	}
	return len(s)
}

// block is the value of "name:" with nothing behind it on its line: the next
// lines, as far as they are indented further or items of a list.
func block(s string, i int) (from, to int) {
	j := i
	for j < len(s) && j-i < 4 && strings.IndexByte("|>+- \r", s[j]) >= 0 {
		j++
	}
	if j == len(s) || s[j] != '\n' {
		return i, i
	}
	next := j - i
	indent := strings.LastIndexByte(s[:i], '\n') + 1
	lineStart := indent
	for indent < len(s) && (s[indent] == ' ' || s[indent] == '-') {
		indent++
	}
	depth := indent - lineStart
	from, to = i+next+1, i+next+1
	for at := from; at < len(s); {
		end := len(s)
		if j := strings.IndexByte(s[at:], '\n'); j >= 0 {
			end = at + j
		}
		text := strings.TrimLeft(s[at:end], " \t")
		deep := end - at - len(text)
		if text != "" && deep <= depth && (deep < depth || !strings.HasPrefix(text, "- ")) {
			break
		}
		if to = end; text != "" && at == from {
			from += deep
		}
		at = end + 1
	}
	return from, max(from, to)
}

// skipSeparator is where the value behind the separator at i may begin:
// := and => and == are separators too.
func skipSeparator(s string, i int) int {
	if s[i] == '%' {
		return i + 3
	}
	for i++; i < len(s) && (s[i] == '=' || s[i] == '>' || s[i] == ':'); {
		i++
	}
	return skipSpaces(s, i)
}

func skipSpaces(s string, i int) int {
	for n := 0; i < len(s) && n < 4 && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	return i
}

// encodedEnd is where the value of an encoded parameter ends: at %26 or %23.
func encodedEnd(s string, from, to int) int {
	value := strings.ToLower(s[from:to])
	for _, end := range []string{"%26", "%23", "%22", "%2c"} {
		if j := strings.Index(value, end); j > 0 {
			value = value[:j]
		}
	}
	return from + len(value)
}

func lineEnd(s string, i int) int {
	if j := strings.IndexAny(s[i:], "\r\n\"'"); j >= 0 {
		return i + j
	}
	return len(s)
}

func endsValue(c byte) bool {
	switch c {
	case '"', '\'', ',', ';', '&', ')', '}', ']', '<', '>', '|':
		return true
	}
	return false
}

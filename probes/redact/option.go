package redact

import (
	"slices"
	"strings"
)

// optionAt is for --name value with the first dash at i.
func optionAt(s string, i int, in place) (from, to int, ok bool) {
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
	if strings.HasPrefix(value, "-") || slices.Contains(smallWords, strings.ToLower(value)) ||
		w == likely && isPath(value) || !hides(w, value, false) {
		return 0, 0, false
	}
	return from, moreValues(s, max(to, wholeValue(s, from, to)), in), true
}

// smallWords follow the name of an option in a sentence about it.
var smallWords = []string{"to", "or", "and", "is", "in", "for", "was", "not", "the", "with", "if", "has", "must", "should", "option", "flag"}

// moreValues is the end of the values that follow an option's first one, which
// ends at to. In a log the words behind it may be those of a sentence.
func moreValues(s string, to int, in place) int {
	for to < len(s) && s[to] == ' ' {
		next := skipSpaces(s, to)
		if next == len(s) || strings.IndexByte("\"'`\\-[{", s[next]) >= 0 {
			return to
		}
		from, end := valueFrom(s, next)
		word := s[from:end]
		if from != next || word == "" || isPlace(word) || isOperator(word) ||
			in == inLog && !looksSecret(word) || strings.ContainsAny(word, "=:[") {
			return to
		}
		to = end
	}
	return to
}

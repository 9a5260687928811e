package redact

import (
	"regexp"
	"slices"
	"strings"
)

// pairAt is for name=value and name: value with the separator at i.
func pairAt(s string, i int, in place) (from, to int, ok bool) {
	name, before := nameBefore(s, i)
	if name == "" {
		return 0, 0, false
	}
	w := weigh(name)
	if q := queryWeight(s, name, before, i); q > w {
		w, in = q, inArgument
	} else if w == harmless {
		if !isValueField(name) || !namedSecret(s, before) {
			return 0, 0, false
		}
		w = certain
	}
	if w == likely && ofWords(s, name, before) {
		w = certain
	}
	if w == likely && isVariable(s, name, before, i) {
		in = inArgument
	}
	start := skipSeparator(s, i)
	from, to = valueFor(w, s, start)
	words := split(name)
	switch last := words[len(words)-1]; {
	case slices.Contains(words, "authorization"):
		from, to = credentials(s, from, to)
	case last == "cookie" && from < len(s) && !isOpening(s[from]):
		to = max(to, lineEnd(s, from))
	case from == to && w == certain && s[i] == ':':
		from, to = block(s, start)
	}
	// An option is as good as an argument, wherever it is written.
	inText := in == inLog && (s[i] == ':' || !strings.HasPrefix(name, "-"))
	value := s[from:to]
	quoted := i > 0 && isQuote(s[i-1]) || from > 0 && isQuote(s[from-1])
	if inText && w == likely && isOpaque(value, quoted) && !endsInKey(name) {
		inText = false
	}
	if !hides(w, value, inText) || w == likely && isPath(value) || w < certain && from < len(s) && s[from] == '{' && inText {
		return 0, 0, false
	}
	if s[i] == '%' {
		return from, encodedEnd(s, from, to), true
	}
	return from, max(to, wholeValue(s, from, to)), true
}

// isVariable tells NAME=value and export name=value, as a shell sets them.
func isVariable(s, name string, before, i int) bool {
	if s[i] != '=' || before+len(name) != i || strings.HasPrefix(name, "-") {
		return false
	}
	return strings.ToUpper(name) == name || strings.HasSuffix(s[:before], "export ")
}

// ofWords tells "api key: x", a name of two words.
func ofWords(s, name string, before int) bool {
	if before < 4 || s[before-1] != ' ' || strings.ContainsAny(name, "-_.") {
		return false
	}
	start := before - 1
	for start > 0 && before-start < maxName && isLetter(s[start-1]) {
		start--
	}
	return slices.Contains([]string{"api", "access", "secret", "auth"}, strings.ToLower(s[start:before-1]))
}

func endsInKey(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, "key") || strings.HasSuffix(lower, "keys")
}

// isValueField is for lists of {"name": "HF_TOKEN", "value": "…"}, as in
// container manifests and recorded HTTP headers.
func isValueField(name string) bool { return name == "value" || name == "Value" }

var nameField = regexp.MustCompile(`(?i)\b(?:name|key)\\?["']?\s*[:=]\s*\\?["']?([A-Za-z0-9_.-]+)\\?["']?\s*,?\s*(?:-\s*)?\\?["']?$`)

// namedSecret says whether the field in front of position i names a secret.
func namedSecret(s string, i int) bool {
	g := nameField.FindStringSubmatch(s[max(0, i-2*maxName):i])
	return g != nil && weigh(g[1]) >= likely
}

// tupleAt is for ("name", "value"), as Python prints lists of headers, with
// the comma at i.
func tupleAt(s string, i int) (from, to int, ok bool) {
	name, before := nameBefore(s, i)
	at := before
	for at > 0 && (isQuote(s[at-1]) || s[at-1] == '\\' || s[at-1] == 'b') {
		at--
	}
	if at == before || at == 0 || s[at-1] != '(' && s[at-1] != '[' || weigh(name) != certain {
		return 0, 0, false
	}
	start := skipSpaces(s, i+1)
	if start == len(s) || strings.IndexByte(`"'\b`, s[start]) < 0 {
		return 0, 0, false
	}
	from, to = valueFrom(s, start)
	if from == start || isEmpty(s[from:to]) {
		return 0, 0, false
	}
	end := to
	for end < len(s) && (s[end] == '\\' || isQuote(s[end])) {
		end++
	}
	if end < len(s) && s[end] != ')' && s[end] != ']' {
		return 0, 0, false // a list of names
	}
	if strings.Contains(strings.ToLower(name), "authorization") {
		from, to = credentials(s, from, to)
	}
	return from, to, !isEmpty(s[from:to])
}

// elementAt is for <name>value</name> with the first '>' at i.
func elementAt(s string, i int) (from, to int, ok bool) {
	name, before := nameBefore(s, i)
	if before == 0 || s[before-1] != '<' || weigh(name) < likely {
		return 0, 0, false
	}
	from, to = i+1, len(s)
	if j := strings.IndexByte(s[from:], '<'); j >= 0 {
		to = from + j
	}
	return from, to, !isEmpty(strings.TrimSpace(s[from:to]))
}

// nameBefore is the name that ends before the separator at i, with its dashes
// and without quotes, and where it begins.
func nameBefore(s string, i int) (name string, at int) {
	end := i
	for end > 0 && i-end < 4 && (s[end-1] == ' ' || s[end-1] == '"' || s[end-1] == '\'' || s[end-1] == '\\' || s[end-1] == ']') {
		end--
	}
	start := end
	for start > 0 && end-start < maxName && isNameByte(s[start-1]) {
		start--
	}
	// The name of a parameter in an encoded URL, or behind an escaped newline.
	if start > 0 && end-start > 2 && s[start-1] == '%' {
		start += 2
	} else if start > 0 && end-start > 1 && s[start-1] == '\\' && (s[start] == 'n' || s[start] == 't' || s[start] == 'r') {
		start++
	}
	return s[start:end], start
}

// credentials steps over the scheme of an Authorization header.
func credentials(s string, from, to int) (int, int) {
	value := s[from:to]
	switch strings.ToLower(value) {
	case "basic", "bearer", "token", "digest", "negotiate", "apikey", "key":
		end := to
		from, to = valueFrom(s, skipSpaces(s, to))
		if to < len(s) && s[to] == '=' || strings.EqualFold(value, "digest") {
			to = lineEnd(s, from)
		}
		if from == to {
			return end, end // a scheme alone
		}
		return from, to
	}
	// A quoted header value holds scheme and token.
	if scheme, rest, ok := strings.Cut(value, " "); ok && rest != "" && isScheme(scheme) {
		return from + len(scheme) + 1, to
	}
	// A signature of several fields: scheme a=b, c=d.
	if strings.HasPrefix(value, "AWS") && to < len(s) && s[to] == ' ' &&
		strings.IndexByte(s[to:min(len(s), to+maxName)], '=') >= 0 {
		return from, max(to, lineEnd(s, from))
	}
	return from, to
}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isLetter(s[i]) {
			return false
		}
	}
	return len(s) <= 12
}

package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// neutral is the report with all its strings neutralised. Going through JSON
// reaches every string, those of fields added later among them, and leaves
// empty lists as [] rather than null.
func neutral(r *Report) *Report {
	b, err := json.Marshal(r)
	if err != nil {
		// Only a NaN or an infinity can do that; New has rounded them away.
		return r
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(b))
	numbers.UseNumber() // byte counts beyond 2^53 stay exact
	if numbers.Decode(&tree) != nil {
		return r
	}
	if b, err = json.Marshal(cleanTree(tree)); err != nil {
		return r
	}
	var out Report
	if json.Unmarshal(b, &out) != nil {
		return r
	}
	return &out
}

func cleanTree(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case []any:
		for i := range v {
			v[i] = cleanTree(v[i])
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = cleanTree(v[k])
		}
		return v
	}
	return v
}

// Clean makes a string harmless on a terminal and in a text: control
// characters (escape sequences among them), characters that turn the direction
// of writing or are invisible, and broken UTF-8 become a visible mark. Line
// ends stay, as some fields have several lines.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if harmful(r) {
			b.WriteRune('\uFFFD')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isClean(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, harmful) < 0
}

// harmful tells whether a character can do something other than be seen.
// U+FFFD itself passes: it is what harm becomes.
func harmful(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20 || r >= 0x7f && r <= 0x9f:
		return true
	case unicode.Is(unicode.Bidi_Control, r):
		return true
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return true
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000:
		return true
	}
	return false
}

// OneLine is s on one line, cut to n characters.
func OneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

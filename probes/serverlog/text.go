package serverlog

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText is the length of a kept line in bytes.
const maxText = 400

// pieces calls each for every piece of a line that is not empty.
func pieces(line []byte, each func(piece []byte)) {
	for len(line) > 0 {
		i := bytes.IndexFunc(line, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
		if i < 0 {
			each(line)
			return
		}
		if i > 0 {
			each(line[:i])
		}
		line = line[i+1:]
	}
}

// stripped is b without ANSI escape sequences. Without any it is b itself.
func stripped(b []byte) []byte {
	if bytes.IndexByte(b, 0x1b) < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != 0x1b {
			out = append(out, b[i])
			i++
			continue
		}
		i += escapeLen(b[i:])
	}
	return out
}

// escapeLen is the length of the escape sequence that b begins with (ECMA-48):
// CSI "ESC [ … final", OSC "ESC ] … BEL or ESC \", else ESC and one byte.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if b[i] < 0x20 || b[i] > 0x7e {
				return i // broken off; what follows is text
			}
		}
		return len(b)
	case ']':
		for i := 2; i < len(b); i++ {
			if b[i] == 0x07 {
				return i + 1
			}
			if b[i] == 0x1b {
				return min(len(b), i+2)
			}
		}
		return len(b)
	}
	return 2
}

// clean makes a piece of a line fit to keep: no escapes, control characters or
// bidirectional overrides, valid UTF-8, no prompts, no secrets, at most
// maxText bytes. at is a position of the piece that has to stay visible.
func clean(piece []byte, at int) string {
	if at <= maxText*3/4 || len(piece) <= maxText {
		return cutText(safe(piece), maxText)
	}
	// Cut only what is redacted already: the second half of a secret does not
	// look like one.
	before := safe(piece[max(0, at-maxSafe):at])
	from := max(0, len(before)-maxText/4)
	for from < len(before) && !utf8.RuneStart(before[from]) {
		from++
	}
	if at > maxSafe {
		from = len(before) // its start may be such a half
	}
	return cutText("…"+before[from:]+safe(piece[at:]), maxText)
}

// maxSafe is how much of a piece is looked at for secrets, in bytes.
const maxSafe = 16 * maxText

// safe is the readable text of a piece without prompts and secrets.
func safe(piece []byte) string {
	if len(piece) > maxSafe {
		piece = piece[:maxSafe]
	}
	s := strings.Map(visible, strings.ToValidUTF8(string(stripped(piece)), "\uFFFD"))
	return redactText(withoutPrompt(strings.TrimSpace(s)))
}

// visible replaces what changes how the text around it looks: -1 drops it.
func visible(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufeff':
		return -1
	}
	return r
}

// cutText is s cut to n bytes at the border of a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

package redact

import (
	"strconv"
	"strings"
)

// Argv returns a command line without the secrets in it; the arguments keep
// their places. A process title in one element is treated as text.
func Argv(argv []string) []string {
	out := make([]string, len(argv))
	for i := 0; i < len(argv); i++ {
		name, value, joined := strings.Cut(argv[i], "=")
		option := isOption(argv[i])
		switch {
		case joined && (option || isName(name)):
			out[i] = name + "=" + valueOf(name, value)
		case option && !isSwitch(name):
			out[i] = String(argv[i])
			i += values(out, argv, i+1, name)
		default:
			out[i] = String(argv[i])
		}
	}
	return out
}

// values redacts the values of the option name, which begin at argv[i], and
// returns how many it dealt with.
func values(out, argv []string, i int, name string) int {
	w := weigh(name)
	n := 0
	for ; i+n < len(argv) && !isOption(argv[i+n]); n++ {
		value := argv[i+n]
		if n > 0 && !strings.HasSuffix(name, "s") {
			// The next word may be the model; it goes only if it tells itself.
			if w == harmless || !looksSecret(value) {
				break
			}
		}
		out[i+n] = valueOf(name, value)
		if w == harmless {
			return n + 1
		}
	}
	return n
}

// Env returns the value of an environment variable without secrets.
func Env(name, value string) string { return valueOf(name, value) }

// valueOf is for a value that stands alone, so that its ends are known.
func valueOf(name, value string) string {
	w := weigh(name)
	if w == certain && isPath(value) && strings.Contains(strings.ToLower(name), "credential") {
		w = harmless // GOOGLE_APPLICATION_CREDENTIALS names a file
	}
	if hides(w, value, false) {
		return marker
	}
	return String(value)
}

// isOption tells an option from a value: negative numbers are values.
func isOption(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}

// isName tells NAME of NAME=value from the beginning of something else.
func isName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

package redact

import (
	"strconv"
	"strings"
)

// Argv returns a command line without the secrets in it; the arguments keep
// their places. A process title in one element is treated as text.
func Argv(argv []string) []string {
	out := make([]string, len(argv))
	var short shortOptions
	for i := 0; i < len(argv); i++ {
		short.see(argv[i])
		name, value, joined := strings.Cut(argv[i], "=")
		option := isOption(argv[i])
		switch {
		case joined && isName(name):
			out[i] = name + "=" + valueOf(name, value)
		case option && short.takes(argv, i):
			out[i] = argv[i]
			i++
			out[i] = short.hide(argv[i])
		case option && short.joins(argv[i]):
			out[i] = argv[i][:2] + marker
		case option && !joined && isName(name) && !isSwitch(name):
			out[i] = text(argv[i])
			i += values(out, argv, i+1, name)
		case isSetting(argv, i):
			out[i] = argv[i]
			i++
			out[i] = valueOf("password", argv[i])
		default:
			out[i] = text(argv[i])
		}
	}
	return out
}

// text is for an argument or variable: a script, a JSON value, a title.
func text(s string) string { return settle(s, inArgument) }

// values redacts the values of the option name, which begin at argv[i], and
// returns how many it dealt with.
func values(out, argv []string, i int, name string) int {
	w := weigh(name)
	n, hidden := 0, false
	for ; i+n < len(argv); n++ {
		value := argv[i+n]
		if isOption(value) && (n > 0 || w != certain || strings.HasPrefix(value, "--") || !looksSecret(value)) {
			break
		}
		if n > 0 && (!hidden || isPlace(text(value)) || isOperator(value)) {
			break // the model, a file or an address, not one more key
		}
		out[i+n] = valueOf(name, value)
		if w == harmless {
			return n + 1
		}
		hidden = hidden || out[i+n] == marker
	}
	return n
}

// isSetting says whether argv[i] is a name without dashes and its value follows,
// as in "configure set aws_secret_access_key X".
func isSetting(argv []string, i int) bool {
	return i > 0 && i+1 < len(argv) && isName(argv[i]) && !isOption(argv[i]) && !isOption(argv[i+1]) &&
		(weigh(argv[i]) == certain || strings.EqualFold(argv[i], "bearer")) && !isPlace(text(argv[i+1]))
}

// isPlace tells a path, an address or a model's name from a key. A key may hold
// slashes, too, but then has long runs of mixed letters and digits.
func isPlace(value string) bool {
	if strings.Contains(value, "://") || isPath(value) {
		return true
	}
	owner, model, ok := strings.Cut(value, "/")
	return ok && owner != "" && model != "" && !strings.Contains(model, "/") &&
		isName(owner) && isName(model) && !looksSecret(owner) && !looksSecret(model)
}

// isOperator tells what ends a command in a shell.
func isOperator(value string) bool {
	switch value {
	case "&&", "||", "|", ";", "&", ">", "<", ">>", "2>&1":
		return true
	}
	return false
}

// Env returns the value of an environment variable without secrets.
func Env(name, value string) string { return valueOf(name, value) }

// valueOf is for a value that stands alone, so that its ends are known.
func valueOf(name, value string) string {
	w := weigh(name)
	switch {
	case w == certain && isPath(value) && strings.Contains(strings.ToLower(name), "credential"):
		w = harmless // GOOGLE_APPLICATION_CREDENTIALS names a file
	case w == likely && isPath(value) && !strings.Contains(value, "\n"):
		w = harmless // --key /etc/key.pem, PWD=/root
	}
	if hides(w, value, false) {
		return marker
	}
	return text(value)
}

// isOption tells an option from a value: negative numbers are values.
func isOption(s string) bool {
	if len(s) < 2 || s[0] != '-' || strings.HasPrefix(s, "-----BEGIN ") {
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

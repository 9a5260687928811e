package redact

import (
	"slices"
	"strconv"
	"strings"
)

// marker stands where a secret stood.
const marker = "[redacted]"

// hides says whether a value under a name of that weight must go. inText is
// for running text, where likely names need a value to match.
func hides(w weight, value string, inText bool) bool {
	switch {
	case w == harmless || isEmpty(value):
		return false
	case w == faint, w == likely && inText:
		return looksSecret(value)
	case w == likely:
		return !isNumber(value)
	}
	return true
}

// isEmpty tells values that say that there is no secret, which is worth
// keeping, and what was redacted before.
func isEmpty(value string) bool {
	v := strings.ToLower(strings.Trim(value, `"'`))
	return slices.Contains([]string{"", "none", "null", "nil", "true", "false", "[]", "{}", "***", "<redacted>", marker}, v)
}

func isNumber(value string) bool {
	_, err := strconv.ParseFloat(strings.TrimRight(value, "%kKmMgG"), 64)
	return err == nil
}

// looksSecret tells long runs of mixed letters and digits. Words joined by
// dashes (model names), paths and addresses are none.
func looksSecret(value string) bool {
	value = strings.Trim(value, `"'`)
	if strings.ContainsRune(value, '/') || strings.HasPrefix(value, "0x") {
		return false
	}
	run, digits, letters := 0, 0, 0
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letters++
		default:
			run, digits, letters = 0, 0, 0
			continue
		}
		if run++; run >= 16 && digits > 0 && letters > 0 {
			return true
		}
	}
	return false
}

// isOpaque is a weaker sign: one word of mixed letters and digits. quoted says
// that the name stands in quotes, as a field of JSON or of a Python dict.
func isOpaque(value string, quoted bool) bool {
	if runEnd(value, 0, len(value), "_-+=~") < len(value) {
		return false
	}
	lower, upper, digit := kinds(value)
	if quoted {
		return len(value) >= 8 && digit > 0 && lower+upper > 0
	}
	return len(value) >= 10 && digit > 1 && lower+upper > 3
}

// isPath tells a value that says where something is.
func isPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") ||
		strings.HasPrefix(value, "../") || strings.HasPrefix(value, "~/")
}

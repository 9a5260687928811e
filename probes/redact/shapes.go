package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// shape is a secret that is known by its own form, whatever it stands under.
type shape struct {
	// mark is a literal every such secret holds; it spares the expression.
	mark string
	form *regexp.Regexp
	// to is what takes its place, in the syntax of Regexp.ReplaceAllString.
	to string
}

// User information in URLs is RFC 3986, section 3.2.1; a password with a slash
// in it is none, but is seen, and differs from a port by not being a number.
// Webhooks are addresses whose last parts are the secret.
var shapes = []shape{
	{"://", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@:]*:[^/\s"']*@`), "${1}" + marker + "@"},
	{"://", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@:\[\]]*:[^/\s"'@]*[^/\s"'@0-9][^/\s"'@]*/[^\s"'@]*@`), "${1}" + marker + "@"},
	{"://", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@:\[\]]{16,}@`), "${1}" + marker + "@"},
	// With HTTP a lone user name is mostly a token.
	{"://", regexp.MustCompile(`(https?://)[^/\s"'@:\[\]?#]+@`), "${1}" + marker + "@"},
	{"@tcp(", regexp.MustCompile(`([A-Za-z0-9_.-]+):[^\s"'\[]+@tcp\(`), "${1}:" + marker + "@tcp("},
	{"hooks.slack.com/", regexp.MustCompile(`(hooks\.slack\.com/[a-z]+/)[A-Za-z0-9/_-]{8,}`), "${1}" + marker},
	{"/api/webhooks/", regexp.MustCompile(`(/api/webhooks/)[0-9]+/[A-Za-z0-9_-]{16,}`), "${1}" + marker},
	{"AccountKey=", regexp.MustCompile(`(AccountKey=)[A-Za-z0-9+/=]+`), "${1}" + marker},
	// The second half of a pair of AWS keys.
	{marker, regexp.MustCompile(`(\[redacted\][\s:,;/]{1,3}["']?)[A-Za-z0-9/+]{40}(\W|$)`), "${1}" + marker + "${2}"},
	{"curl", regexp.MustCompile(`(\bcurl\b[^\n|;]*?\s(?:-u|-U|--user|--proxy-user)[ =]?["']?[^\s"':\[]+:)[^\s"'\[]+`), "${1}" + marker},
	{"curl", regexp.MustCompile(`(\bcurl\b[^\n|;]*?\s--oauth2-bearer[ =]["']?)[^\s"'\[]+`), "${1}" + marker},
	{"redis-cli", regexp.MustCompile(`(\bredis-cli\b[^\n|;]*?\s-a ["']?)[^\s"'\[]+`), "${1}" + marker},
	{"sshpass", regexp.MustCompile(`(\bsshpass -p ?["']?)[^\s"'\[]+`), "${1}" + marker},
	{"login", regexp.MustCompile(`(\blogin\b[^\n|;]*?\s-p ["']?)[^\s"'\[]+`), "${1}" + marker},
	{" provided: ", regexp.MustCompile(`(?i)((?:key|token|password) provided: ["']?)[^\s"'\[]+`), "${1}" + marker},
	{"setenv ", regexp.MustCompile(`(?i)(\bsetenv \w*(?:token|key|secret|password) ["']?)[^\s"'\[]+`), "${1}" + marker},
}

// bearer is a token that follows its scheme without a header name. A digit,
// great length or nothing but capitals tells it from the words of a sentence.
var bearer = regexp.MustCompile(`\b((?i:bearer)\s+)([A-Za-z0-9._~+/=-]*[0-9][A-Za-z0-9._~+/=-]*|[A-Za-z._~+/=-]{20,}|[A-Z_]{8,}\b)`)

// basic is a login that follows its scheme without a header name (RFC 7617).
var basic = regexp.MustCompile(`\b([Bb]asic\s+)([A-Za-z0-9+/]{4,}={0,2})`)

// byShape replaces every secret of a known form.
func byShape(s string) string {
	s = privateKeys(s)
	s = keyForms(s)
	for i := range shapes {
		if sh := &shapes[i]; strings.Contains(s, sh.mark) {
			s = sh.form.ReplaceAllString(s, sh.to)
		}
	}
	if strings.Contains(s, "earer") || strings.Contains(s, "EARER") {
		s = bearer.ReplaceAllString(s, "${1}"+marker)
	}
	if strings.Contains(s, "asic ") {
		s = basic.ReplaceAllStringFunc(s, func(found string) string {
			g := basic.FindStringSubmatch(found)
			login, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(g[2], "="))
			if err != nil || !strings.Contains(string(login), ":") {
				return found
			}
			return g[1] + marker
		})
	}
	return s
}

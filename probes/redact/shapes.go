package redact

import (
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

// The forms are those the issuers document for their scanners: Hugging Face,
// OpenAI and Anthropic, GitHub, GitLab, AWS, NVIDIA NGC, Slack, Google, Groq;
// JWTs are RFC 7519, user information in URLs RFC 3986.
var shapes = []shape{
	{"-----BEGIN ", regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "${1}" + marker},
	{"://", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@:]*:[^/\s"']*@`), "${1}" + marker + "@"},
	{"://", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s"'@:\[\]]{16,}@`), "${1}" + marker + "@"},
	{"hf_", regexp.MustCompile(`\bhf_[A-Za-z0-9]{8,}`), marker},
	{"sk-", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]*[A-Za-z0-9]{16,}[A-Za-z0-9_-]*`), marker},
	{"sk-", regexp.MustCompile(`\bsk-(?:proj|ant|or|svcacct)-[A-Za-z0-9_-]{8,}`), marker},
	{"gh", regexp.MustCompile(`\bgh[pousr]_[A-Za-z0-9]{16,}`), marker},
	{"github_pat_", regexp.MustCompile(`\bgithub_pat_[A-Za-z0-9_]{16,}`), marker},
	{"glpat-", regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{8,}`), marker},
	{"AKIA", regexp.MustCompile(`\bAKIA[A-Z0-9]{12,}`), marker},
	{"ASIA", regexp.MustCompile(`\bASIA[A-Z0-9]{12,}`), marker},
	{"nvapi-", regexp.MustCompile(`\bnvapi-[A-Za-z0-9_-]{8,}`), marker},
	{"xox", regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{8,}`), marker},
	{"AIza", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`), marker},
	{"gsk_", regexp.MustCompile(`\bgsk_[A-Za-z0-9]{16,}`), marker},
	{"eyJ", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`), marker},
}

// bearer is a token that follows its scheme without a header name. A digit or
// great length tells it from the words of a sentence.
var bearer = regexp.MustCompile(`(?i)\b(bearer\s+)([A-Za-z0-9._~+/=-]*[0-9][A-Za-z0-9._~+/=-]*|[A-Za-z._~+/=-]{20,})`)

// byShape replaces every secret of a known form.
func byShape(s string) string {
	for _, sh := range shapes {
		if strings.Contains(s, sh.mark) {
			s = sh.form.ReplaceAllString(s, sh.to)
		}
	}
	if strings.Contains(s, "earer") || strings.Contains(s, "EARER") {
		s = bearer.ReplaceAllString(s, "${1}"+marker)
	}
	return s
}

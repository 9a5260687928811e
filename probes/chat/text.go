package chat

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/whyhang/whyhang/probes/redact"
)

// maxText limits what is kept of one answer, in bytes; maxKept what is looked
// at for it, so that a secret at the cut is still seen whole.
const (
	maxText = 2000
	maxKept = 2 * maxText
)

// keep appends s to b up to maxKept bytes.
func keep(b *strings.Builder, s string) {
	if room := maxKept - b.Len(); len(s) > room {
		s = cut(s, max(room, 0))
	}
	b.WriteString(s)
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clean makes text of the server fit for evidence: without the API key, in
// case the server sends it back, without other secrets, and at most n bytes.
func (c *Client) clean(s string, n int) string {
	s = strings.ToValidUTF8(cut(s, max(maxKept, n)), "\uFFFD")
	for _, secret := range c.secrets() {
		s = strings.ReplaceAll(s, secret, "[redacted]")
		// The cut may have left a part of it.
		for k := len(secret) - 1; k >= 4; k-- {
			if strings.HasSuffix(s, secret[:k]) {
				s = s[:len(s)-k]
				break
			}
		}
	}
	return cut(redact.String(s), n)
}

// secrets are what the client itself brought to the server.
func (c *Client) secrets() []string {
	var all []string
	if key := strings.TrimSpace(c.APIKey); key != "" {
		all = append(all, key)
	}
	if u, err := c.base(); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && password != "" {
			all = append(all, password)
		}
	}
	return all
}

// quote puts text of the server into a sentence: on one line, in quotes, at
// most n bytes of it.
func (c *Client) quote(s string, n int) string {
	s = strings.Join(strings.Fields(c.clean(s, maxKept)), " ")
	if len(s) > n {
		s = strings.TrimSpace(cut(s, n)) + " …"
	}
	return strconv.Quote(s)
}

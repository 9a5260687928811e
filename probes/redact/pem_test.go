package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Marked lines begin with a star here.
func TestKeyLines(t *testing.T) {
	const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, tc := range []struct {
		name  string
		lines []string
	}{
		{"whole", []string{"-----BEGIN PRIVATE KEY-----", "*" + body1, "*" + body2, "*" + body3, "-----END PRIVATE KEY-----", "next"}},
		{"the log's prefix", []string{"[12:00 TP0] -----BEGIN PRIVATE KEY-----", "*[12:00 TP0] " + body1, "*[12:00 TP0] " + body2, "[12:00 TP0] -----END PRIVATE KEY-----"}},
		{"lines in between", []string{"-----BEGIN EC PRIVATE KEY-----", "*" + body1, "INFO: 127.0.0.1 GET /health 200 OK", "*" + body2, "-----END EC PRIVATE KEY-----"}},
		{"beginning cut off", []string{"*" + body1[40:], "*" + body2, "*" + body3, "-----END PRIVATE KEY-----", "ready"}},
		{"only its end", []string{"*" + body3, "-----END PRIVATE KEY-----", "ready"}},
		{"one line and its end", []string{"*" + body2, "-----END PRIVATE KEY-----"}},
		{"still being written", []string{"-----BEGIN PRIVATE KEY-----", "*" + body1, "*" + body2[:20]}},
		{"both ends cut off", []string{"*" + body1, "*" + body2, "*" + body2}},
		{"both ends cut off, first line in halves", []string{"*" + body1[50:], "*" + body2, "*" + body2}},
		{"short last line without END", []string{"*" + body1, "*" + body2, "*" + body3, "server is up"}},
		{"carriage returns", []string{"*" + body1 + "\r", "*" + body2 + "\r", "-----END PRIVATE KEY-----\r"}},
		{"checksums", []string{sum, sum, sum + "  file"}},
		{"one long word", []string{"a", body1, "b"}},
		{"a certificate's ends", []string{"-----BEGIN CERTIFICATE-----", "word", "-----END CERTIFICATE-----"}},
		{"rules of a table", []string{strings.Repeat("=", 64), strings.Repeat("=", 64)}},
		{"nothing", nil},
	} {
		lines := make([]string, len(tc.lines))
		for i, line := range tc.lines {
			lines[i] = strings.TrimPrefix(line, "*")
		}
		got := KeyLines(lines)
		for i, key := range got {
			if key {
				lines[i] = "*" + lines[i]
			}
		}
		if diff := cmp.Diff(append([]string{}, tc.lines...), lines); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func FuzzKeyLines(f *testing.F) {
	f.Add("a\nb", "x")
	f.Add("-----END PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, before, after string) {
		first := strings.Split(before, "\n")
		lines := append(first, body1, body2)
		lines = append(lines, strings.Split(after, "\n")...)
		got := KeyLines(lines)
		if len(got) != len(lines) || !got[len(first)] || !got[len(first)+1] {
			t.Fatalf("a key's lines stay: %v", got)
		}
	})
}

// The last 64 KiB of a log are looked at once.
func BenchmarkKeyLines(b *testing.B) {
	const line = "[2026-02-22 22:59:08 TP0] Decode batch, #running-req: 1, #token: 92, token usage: 0.01, cuda graph: False"
	lines := strings.Split(strings.Repeat(line+"\n", 64<<10/len(line)), "\n")
	b.SetBytes(64 << 10)
	for b.Loop() {
		KeyLines(lines)
	}
}

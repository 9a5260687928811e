package serverlog

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// keyText is base64 as in the body of a private key.
func keyText(n int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

// A private key in a log is a secret of many lines, of which the tail may hold
// any part.
func TestTailHidesPrivateKeys(t *testing.T) {
	body := strings.Repeat(keyText(64)+"\n", 25) + keyText(22) + "==\n"
	for _, tc := range []struct{ name, text, bar string }{
		{"whole", "up\n-----BEGIN PRIVATE KEY-----\n" + body[len(body)-300:] + "-----END PRIVATE KEY-----\nready\n", ""},
		{"beginning out of sight", "-----BEGIN PRIVATE KEY-----\n" + body + "-----END PRIVATE KEY-----\nready\n", ""},
		{"both ends out of sight", "-----BEGIN PRIVATE KEY-----\n" + body[:65*25], ""},
		{"longer than what is read of the end", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(keyText(64)+"\n", 2000), ""},
		{"still being written", "-----BEGIN PRIVATE KEY-----\n" + body + keyText(20), keyLine},
		{"with colours", "\x1b[31m-----BEGIN PRIVATE KEY-----\n" + strings.ReplaceAll(body, "\n", "\x1b[0m\n") + "ready\n", ""},
	} {
		path := write(t, "server.log", tc.text)
		r := reader(t)
		logs, _ := r.Scan(within(t, time.Minute), []Candidate{Named(path)})
		if len(logs) != 1 || len(logs[0].Tail) == 0 {
			t.Fatalf("%s: logs %+v", tc.name, logs)
		}
		for _, line := range logs[0].Tail {
			if strings.Contains(line.Text, keyText(64)[:12]) || strings.Contains(line.Text, keyText(22)[:12]) || strings.Contains(line.Text, keyText(20)[:12]) {
				t.Errorf("%s: line %d is %s", tc.name, line.Number, line.Text)
			}
		}
		if last := logs[0].Tail[len(logs[0].Tail)-1].Text; strings.HasSuffix(tc.text, "ready\n") && last != "ready" {
			t.Errorf("%s: the line below the key became %q", tc.name, last)
		}
		if frames := r.Frame(context.Background()); len(frames) != 1 || frames[0].Bar != tc.bar {
			t.Errorf("%s: frames %+v", tc.name, frames)
		}
		r.Close()
	}
}

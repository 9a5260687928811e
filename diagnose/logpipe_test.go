package diagnose

import (
	"io"
	"os"
	"testing"

	"github.com/whyhang/whyhang/rules/rule"
)

// A server whose output goes into a pipe, and a logger behind it that reads or
// does not.
func TestLogPipe(t *testing.T) {
	for _, reads := range []bool{false, true} {
		name := "the logger does not read"
		if reads {
			name = "the logger reads"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p := newStarting(t).startInto(t, w, "chatter=3000")
			w.Close()
			if reads {
				go func() { _, _ = io.Copy(io.Discard, r) }()
			}
			j := diagnosed(t, quick(p.PID))
			if f := found(j, "log-pipe-full"); (f != nil) == reads {
				t.Errorf("%s (%s): %s", j.Verdict, j.Cause, j.Sentence)
			}
			if !reads {
				expect(t, j, rule.Stalled, rule.NoMovement)
			}
		})
	}
}

package serverlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// growing is a log that a test writes to.
type growing struct {
	t    *testing.T
	path string
	f    *os.File
	log  *logFile
}

// watched writes a log, scans it and follows it.
func watched(t *testing.T, text string) *growing {
	t.Helper()
	return watchedBy(t, few, text)
}

func watchedBy(t *testing.T, known setup, text string) *growing {
	t.Helper()
	g := &growing{t: t, path: filepath.Join(t.TempDir(), "server.log")}
	g.create()
	g.write(text)
	var err error
	if g.log, err = newLogFile(catalogueOf(t, known), Named(g.path)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.log.restart(); g.log.f.Close(); g.f.Close() })
	if s := g.log.scan(0); s.Refused != nil || len(s.Notes) > 0 {
		t.Fatalf("scan: %+v", s)
	}
	return g
}

func (g *growing) create() {
	g.t.Helper()
	var err error
	if g.f, err = os.OpenFile(g.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *growing) write(text string) {
	g.t.Helper()
	if _, err := g.f.WriteString(text); err != nil {
		g.t.Fatal(err)
	}
}

func (g *growing) frame() (evidence.LogFrame, string) {
	g.t.Helper()
	f, notes := g.log.frame()
	if f == nil {
		g.t.Fatalf("no frame: %v", notes)
	}
	return *f, strings.Join(notes, "; ")
}

func TestFrames(t *testing.T) {
	tests := []struct {
		name, before, after     string
		lines, content, serving int64
		bar                     string
	}{
		{"nothing", "a\n", "", 0, 0, 0, ""},
		{"a line", "a\n", "b\n", 1, 1, 0, ""},
		{"the same line again", "took 1 s\n", "took 2 s\n", 1, 0, 0, ""},
		{"retries", "a\n", strings.Repeat("[10:00:00 TP0] lock not acquired, waiting\n", 800), 800, 0, 0, ""},
		{"requests", "a\n", "[10:00:00] decode batch 1\n[10:00:01] decode batch 2\n", 2, 1, 2, ""},
		{"a line in two writes", "a\nbegin", " and end\n", 1, 1, 0, ""},
		{"a bar that stands still", "a\nloading shards: 25% 1/4", "\rloading shards: 25% 1/4", 0, 0, 0, "loading shards: 25% 1/4"},
		{"a bar that moves", "a\nloading shards: 25% 1/4", "\rloading shards: 50% 2/4", 0, 1, 0, "loading shards: 50% 2/4"},
		{"an unfinished line", "a\n", "b\nunfinished", 1, 2, 0, "unfinished"},
		{"a hole", "a\n", "\x00\x00\x00\x00[10:00:00] load begins\n", 1, 1, 0, ""},
		{"into an empty log", "", "b\n", 1, 1, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := watched(t, tt.before)
			if f, notes := g.frame(); f.NewLines != 0 || f.NewContent != 0 || notes != "" {
				t.Fatalf("before anything was written: %+v, %s", f, notes)
			}
			g.write(tt.after)
			f, notes := g.frame()
			want := evidence.LogFrame{Path: g.path, SizeBytes: int64(len(tt.before) + len(tt.after)), NewLines: tt.lines, NewContent: tt.content, Activity: tt.serving, Bar: tt.bar}
			if f != want || notes != "" {
				t.Errorf("got %+v %s\nwant %+v", f, notes, want)
			}
			if f, _ := g.frame(); f.NewLines != 0 || f.NewContent != 0 {
				t.Errorf("counted twice: %+v", f)
			}
		})
	}
}

func TestFrameAfterTruncation(t *testing.T) {
	for _, after := range []string{"", "new\n", strings.Repeat("much longer than before\n", 100)} {
		g := watched(t, "[10:00:00 TP0] load begins\n[10:00:01] e is ready to serve\n")
		if err := g.f.Truncate(0); err != nil {
			t.Fatal(err)
		}
		g.write(after)
		f, notes := g.frame()
		lines := int64(strings.Count(after, "\n"))
		if f.NewLines != lines || !strings.Contains(notes, "truncated") {
			t.Errorf("after %d bytes: %+v, %q", len(after), f, notes)
		}
		s := g.log.scan(0)
		if s.Log.Lines != lines || len(s.Log.Marks) != 0 {
			t.Errorf("scanned again: %+v", s.Log)
		}
		g.write("more\n")
		if f, notes := g.frame(); f.NewLines != 1 || notes != "" {
			t.Errorf("followed on: %+v, %q", f, notes)
		}
	}
}

func TestFrameAfterReplacement(t *testing.T) {
	g := watched(t, "old\n")
	if err := os.Rename(g.path, g.path+".1"); err != nil {
		t.Fatal(err)
	}
	// The name is gone: the open file is still the log.
	g.write("late\n")
	if f, notes := g.frame(); f.NewLines != 1 || notes != "" {
		t.Errorf("renamed: %+v, %q", f, notes)
	}
	g.f.Close()
	g.create()
	g.write("x\ny\n")
	f, notes := g.frame()
	if f.NewLines != 2 || f.SizeBytes != 4 || !strings.Contains(notes, "replaced") {
		t.Errorf("replaced: %+v, %q", f, notes)
	}
}

func TestFrameOfRemovedFile(t *testing.T) {
	g := watched(t, "old\n")
	if err := os.Remove(g.path); err != nil {
		t.Fatal(err)
	}
	g.write("late\n")
	if f, notes := g.frame(); f.NewLines != 1 || notes != "" {
		t.Errorf("removed: %+v, %q", f, notes)
	}
}

// A second scan goes on where the first stopped, and tells everything.
func TestScanAgain(t *testing.T) {
	g := watched(t, "[10:00:00 TP0] load begins\n[10:00:01 TP0] load ends after")
	g.write(" 7 s\n[10:00:02] e is ready to serve\n")
	s := g.log.scan(0)
	if s.Log.Lines != 3 || markOf(s.Log, "e.weights.end", "TP0").Count != 1 || markOf(s.Log, "e.ready.ready", "").First.Line != 3 || markOf(s.Log, "e.weights.begin", "TP0").Count != 1 {
		t.Errorf("%+v", s.Log)
	}
}

// A log that floods is still counted to the last line.
func TestFlood(t *testing.T) {
	g := watched(t, "a\n")
	var total, lines int64
	for i := range 20 {
		g.write(strings.Repeat(fmt.Sprintf("[10:00:00 TP0] flood number %d\n", i), 500))
		lines += 500
	}
	for deadline := time.Now().Add(time.Minute); total < lines && time.Now().Before(deadline); {
		f, _ := g.frame()
		total += f.NewLines
	}
	if total != lines {
		t.Errorf("%d lines, want %d", total, lines)
	}
}

// Two ranks of a real server compile in turn, and the one that waits asks for
// the lock hundreds of times: none of these lines is progress. That the lock was
// got is.
func TestLockRetriesOfARealLog(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(logs, "sglang-0.5.23-cpu-tp2-debug.log"))
	if err != nil {
		t.Fatal(err)
	}
	var before, retries, got strings.Builder
	for line := range strings.Lines(string(b)) {
		switch {
		case strings.Contains(line, " not acquired on "), strings.Contains(line, "Attempting to acquire lock"):
			retries.WriteString(line)
		case strings.Contains(line, " acquired on "):
			got.WriteString(line)
		case retries.Len() == 0:
			before.WriteString(line)
		}
	}
	lines := int64(strings.Count(retries.String(), "\n"))
	if lines < 750 || got.Len() == 0 {
		t.Fatalf("%d retries, %d bytes of success", lines, got.Len())
	}
	g := watchedBy(t, knownLines(t), before.String())
	g.write(retries.String())
	if f, _ := g.frame(); f.NewLines != lines || f.NewContent != 0 {
		t.Errorf("of %d retries: %+v", lines, f)
	}
	g.write(got.String())
	if f, _ := g.frame(); f.NewContent == 0 {
		t.Errorf("locks were got: %+v", f)
	}
}

package serverlog

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// memory is the most memory the reader's child has had so far, in bytes
// (VmHWM, proc_pid_status(5)).
func memory(t testing.TB, r *Reader) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(r.child.PID()) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no VmHWM in %s", b)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// A line of 64 MB, a bar of 16 MB, and 20 GB that are not there: what is
// known in and behind them is found, in no more memory than for any log.
func TestHugeLinesAndHoles(t *testing.T) {
	const launch, ready = "[10:00:01] server starts\n", "[10:00:09] e is ready to serve\n"
	tests := []struct {
		name  string
		write func(f *os.File) error
		lines int64
	}{
		{"a line", func(f *os.File) error {
			_, err := io.Copy(f, io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x y 0 "), 32<<20/6)),
				bytes.NewReader([]byte("lock not acquired")), bytes.NewReader(bytes.Repeat([]byte("z"), 32<<20)), bytes.NewReader([]byte("\n"))))
			return err
		}, 3},
		{"a bar", func(f *os.File) error {
			_, err := f.Write(append(bytes.Repeat([]byte("\rloading shards:  50% 1/2"), 16<<20/25), "lock not acquired\n"...))
			return err
		}, 3},
		{"a hole", func(f *os.File) error {
			if _, err := f.WriteString("lock not acquired"); err != nil {
				return err
			}
			_, err := f.Seek(20<<30, io.SeekCurrent)
			return err
		}, 2}, // no newline stands before it
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "server.log")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, write := range []func(*os.File) error{
				func(f *os.File) error { _, err := f.WriteString(launch); return err },
				tt.write,
				func(f *os.File) error { _, err := f.WriteString(ready); return err },
			} {
				if err := write(f); err != nil {
					t.Skipf("cannot write it here: %v", err)
				}
			}
			r, err := Start(few.Signatures, few.Formats, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			logs, run := r.Scan(context.Background(), []Candidate{Named(path)})
			if len(logs) != 1 {
				t.Fatalf("%+v", run)
			}
			l := logs[0]
			if l.Lines != tt.lines || markOf(l, "e.any.lock", "").Count != 1 || markOf(l, "e.ready.ready", "").First.Line != tt.lines {
				t.Errorf("%d lines, %+v", l.Lines, l.Marks)
			}
			if got := memory(t, r); got > 64<<20 {
				t.Errorf("%d MB of memory", got>>20)
			}
			if frames := r.Frame(context.Background()); len(frames) != 1 {
				t.Errorf("not followed: %+v", r.FrameRun())
			}
		})
	}
}

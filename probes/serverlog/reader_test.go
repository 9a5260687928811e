package serverlog

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// reader starts a child that knows the few signatures.
func reader(t *testing.T) *Reader {
	t.Helper()
	r, err := Start(few.Signatures, few.Formats, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReader(t *testing.T) {
	path := write(t, "server.log", "[10:00:00 TP0] load begins\n[10:00:05] e is ready to serve\n")
	r := reader(t)
	logs, run := r.Scan(within(t, time.Minute), []Candidate{Named(path)})
	if run.Name != evidence.ProbeLog || run.Status != evidence.OK || !strings.Contains(run.Detail, "read 2 lines") {
		t.Errorf("run %+v", run)
	}
	if len(logs) != 1 || logs[0].Path != path || logs[0].Source != "--log" || logs[0].Lines != 2 ||
		logs[0].Modified.IsZero() || logs[0].SilentS < 0 || markOf(logs[0], "e.ready.ready", "").First.Line != 2 {
		t.Fatalf("logs %+v", logs)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("more\n[10:00:06] decode batch\n"); err != nil {
		t.Fatal(err)
	}
	frames := r.Frame(within(t, time.Minute))
	if len(frames) != 1 || frames[0].NewLines != 2 || frames[0].NewContent != 2 || frames[0].Activity != 1 || r.FrameRun().Status != evidence.OK {
		t.Errorf("frames %+v, %+v", frames, r.FrameRun())
	}
	logs, _ = r.Scan(within(t, time.Minute), []Candidate{Named(path)})
	if len(logs) != 1 || logs[0].Lines != 4 || markOf(logs[0], "e.serving.batch", "").Count != 1 {
		t.Errorf("scanned again: %+v", logs)
	}
}

func TestStartRefusesWrongSignatures(t *testing.T) {
	if _, err := Start([]evidence.Signature{{ID: "mine", Literal: "abc"}}, nil, 0); err == nil || !strings.Contains(err.Error(), "mine") {
		t.Errorf("error %v does not name the signature", err)
	}
}

// What is no file is said to be none, and is not read: its data would be lost
// to who should get it, and opening it could wait for ever.
func TestScanOfWhatIsNoLog(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo.log")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path   string
		status evidence.Status
		says   string
	}{
		{fifo, evidence.Unsupported, "is a pipe"},
		{dir, evidence.Unsupported, "is a directory"},
		{"/dev/zero", evidence.Unsupported, "is a device"},
		{filepath.Join(dir, "none.log"), evidence.Failed, "no such file"},
	}
	r := reader(t)
	for _, tt := range tests {
		logs, run := r.Scan(within(t, time.Minute), []Candidate{Named(tt.path)})
		if len(logs) != 0 || run.Status != tt.status || !strings.Contains(run.Detail, tt.says) || !strings.Contains(run.Detail, tt.path) {
			t.Errorf("%s: %v, %+v", tt.path, logs, run)
		}
	}
	if _, run := r.Scan(within(t, time.Minute), nil); run.Status != evidence.Skipped || run.Detail == "" {
		t.Errorf("no candidates: %+v", run)
	}
}

func TestScanDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	path := write(t, "server.log", "x\n")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, run := reader(t).Scan(within(t, time.Minute), []Candidate{Named(path)})
	if run.Status != evidence.Denied || !strings.HasPrefix(run.Hint, "sudo ") {
		t.Errorf("%+v", run)
	}
}

// A file on a mount that does not answer costs its own log, not the others.
func TestScanWithStuckAndCrashingFiles(t *testing.T) {
	defer func(d time.Duration) { openLimit = d }(openLimit)
	openLimit = 300 * time.Millisecond
	good := write(t, "server.log", "[10:00:05] e is ready to serve\n")
	dir := filepath.Dir(good)
	r := reader(t)
	logs, run := r.Scan(within(t, time.Minute), []Candidate{
		Named(filepath.Join(dir, "stuck.log")), Named(filepath.Join(dir, "crash.log")), Named(good),
	})
	if len(logs) != 1 || markOf(logs[0], "e.ready.ready", "").Count != 1 {
		t.Errorf("the good log: %+v", logs)
	}
	if run.Status != evidence.Partial || !strings.Contains(run.Detail, "stuck.log") || !strings.Contains(run.Detail, "no answer within") || !strings.Contains(run.Detail, "crash.log") {
		t.Errorf("%+v", run)
	}
	if f := r.Frame(within(t, time.Minute)); len(f) != 1 {
		t.Errorf("the good log is not followed: %+v", f)
	}
	_, run = r.Scan(within(t, time.Minute), []Candidate{Named(filepath.Join(dir, "stuck.log"))})
	if run.Status != evidence.Timeout {
		t.Errorf("only the stuck one: %+v", run)
	}
	if f := r.Frame(within(t, time.Minute)); f != nil {
		t.Errorf("frames of nothing: %+v", f)
	}
}

func TestScanPastItsDeadline(t *testing.T) {
	path := write(t, "server.log", strings.Repeat("[10:00:00 TP0] load begins\n", 1<<20))
	r := reader(t)
	logs, run := r.Scan(within(t, 55*time.Millisecond), []Candidate{Named(path)})
	switch {
	case run.Status == evidence.Partial && len(logs) == 1 && logs[0].SizeBytes < 27<<20 && strings.Contains(run.Detail, "time was up"):
	case run.Status == evidence.Timeout && len(logs) == 0 && strings.Contains(run.Detail, path): // a slow machine
	case run.Status == evidence.OK && len(logs) == 1 && logs[0].Lines == 1<<20: // a fast one
	default:
		t.Errorf("%d logs, %+v", len(logs), run)
	}
}

// server starts a shell that runs a script in a directory of its own.
func server(t *testing.T, script string) (evidence.Process, string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", script+"\necho up > started\nexec sleep 60")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the shell did not start")
		}
	}
	return evidence.Process{PID: cmd.Process.Pid}, dir
}

func TestFindAndRead(t *testing.T) {
	tests := []struct {
		name, script, file string
		deleted            bool
	}{
		{"both streams", "exec > out 2>&1\necho '[10:00:00] e is ready to serve'", "out", false},
		{"a log beside them", "exec > /dev/null 2>&1 3>> server.log\necho '[10:00:00] e is ready to serve' >&3", "server.log", false},
		{"a removed log", "exec > gone.log 2>&1\necho '[10:00:00] e is ready to serve'\nrm gone.log", "gone.log", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, dir := server(t, tt.script)
			candidates, unread := Find("/proc", []evidence.Process{p})
			if len(candidates) != 1 || candidates[0].Path != filepath.Join(dir, tt.file) || candidates[0].Deleted != tt.deleted {
				t.Fatalf("%+v, %+v", candidates, unread)
			}
			logs, run := reader(t).Scan(within(t, time.Minute), candidates)
			if run.Status != evidence.OK || len(logs) != 1 || markOf(logs[0], "e.ready.ready", "").Count != 1 {
				t.Errorf("%+v, %+v", logs, run)
			}
		})
	}
}

func TestFindPipes(t *testing.T) {
	p, _ := server(t, "exec 2>/dev/null")
	candidates, unread := Find("/proc", []evidence.Process{p})
	if len(candidates) != 0 {
		t.Errorf("candidates %+v", candidates)
	}
	run := NotFound(unread)
	if run.Status != evidence.Unsupported || !strings.Contains(run.Hint, "--log FILE") || !strings.Contains(run.Detail, "/dev/null") {
		t.Errorf("%+v", run)
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/diagnose/report"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// binary is whyhang, built once, for every user to run.
func binary(t testing.TB) string {
	t.Helper()
	dir, err := scenario.Dir()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "whyhang")
	if _, err := os.Stat(out); err == nil {
		return out
	}
	if b, err := exec.Command("go", "build", "-o", out, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return out
}

// asNobody runs whyhang as an ordinary user.
func asNobody(t *testing.T, args ...string) *report.Report {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	cmd := exec.Command(binary(t), append(args, "--json", "--window", "6s")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: nobody}
	cmd.Dir = "/"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var r report.Report
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("%v, %v\n%s\n%s", err, jerr, out, stderr.String())
	}
	return &r
}

// An ordinary user may prove a deadlock of an own process.
func TestOrdinaryUserOwnProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	s := scenario.StartCmd(t, nobody, exec.Command(scenario.Build(t, "abba"), "20"))
	r := asNobody(t, strconv.Itoa(s.PID))
	if r.Verdict != rule.Deadlocked || r.Strength != rule.Proved {
		t.Errorf("%s/%s (%s): %s", r.Verdict, r.Cause, r.Strength, r.Sentence)
	}
}

// A process that forbids its own user to look inside shows states and nothing
// that proves; the report says what would.
func TestUndumpable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	s := scenario.StartCmd(t, nobody, exec.Command(scenario.Build(t, "abba"), "20", "undumpable"))
	pid := strconv.Itoa(s.PID)
	r := asNobody(t, pid)
	if r.Verdict != rule.Unknown || r.Cause != rule.NoPermission || len(r.Next) == 0 || r.Next[0].Command != "sudo whyhang "+pid {
		t.Errorf("%s/%s: %s %+v", r.Verdict, r.Cause, r.Sentence, r.Next)
	}
	if !strings.Contains(r.Sentence, "cannot prove a deadlock") {
		t.Errorf("%s", r.Sentence)
	}
	// Root may.
	out, _ := exec.Command(binary(t), pid, "--json").Output()
	if !bytes.Contains(out, []byte(`"strength": "proved"`)) {
		t.Errorf("root: %s", out)
	}
}

// In a container as whyhang sees it from inside: a user namespace, a PID
// namespace, a /proc of its own.
func TestInsideNamespaces(t *testing.T) {
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("no unshare")
	}
	for _, user := range []*syscall.Credential{nil, nobody} {
		if user != nil && os.Geteuid() != 0 {
			continue
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c",
			`sleep 60 | "$1" 20 > "$2/ready" & p=$!
			until grep -q ready "$2/ready"; do sleep 0.05; done
			"$3" $p --json; kill -9 $p`, "sh", scenario.Build(t, "abba"), dir, binary(t))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("unshare:")) {
			t.Skipf("%s", out)
		}
		if !bytes.Contains(out, []byte(`"strength": "proved"`)) || !bytes.Contains(out, []byte(`"cause": "lock-cycle"`)) {
			t.Errorf("user %v: %v\n%s", user, err, out)
		}
	}
}

// Of somebody else's process an ordinary user gets no verdict that rests on
// what could not be seen, but what was missing and the command that would do.
func TestOrdinaryUserForeignProcess(t *testing.T) {
	binary(t)
	dir := t.TempDir()
	for name, s := range map[string]*scenario.Process{
		"deadlock": scenario.Start(t, "abba", "20"),
		"server":   scenario.Start(t, "idle_http"),
		"load":     scenario.Start(t, "load", "mmap", filepath.Join(dir, "a.safetensors"), "2048", "50"),
		"stopped":  scenario.Start(t, "load", "stop", filepath.Join(dir, "b.safetensors"), "100", "100"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asNobody(t, strconv.Itoa(s.PID))
			if r.Verdict != rule.Unknown || r.Cause != rule.NoPermission || r.ExitCode != 9 {
				t.Errorf("%s/%s: %s", r.Verdict, r.Cause, r.Sentence)
			}
			if !strings.Contains(r.Sentence, "permission denied") || len(r.Next) == 0 || r.Next[0].Command != "sudo whyhang "+strconv.Itoa(s.PID) {
				t.Errorf("%s %+v", r.Sentence, r.Next)
			}
			if len(r.NotEvaluated) == 0 {
				t.Error("everything was evaluated")
			}
		})
	}
}

// whyhang may not trace, signal or write to anybody: the kernel's own record of
// its calls says so.
func TestNoHarm(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	s := scenario.Start(t, "abba")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-o", trace, "-e", "trace=ptrace,process_vm_writev,kill,tkill,pidfd_send_signal,rt_sigqueueinfo", binary(t), strconv.Itoa(s.PID), "--json")
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), `"verdict": "deadlocked"`) {
		t.Skipf("strace could not run it: %v\n%s", err, out)
	}
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for l := range strings.Lines(string(b)) {
		switch {
		case strings.Contains(l, "+++ "), strings.Contains(l, "--- SIG"):
		case strings.Contains(l, strconv.Itoa(s.PID)):
			t.Errorf("did something to the target: %s", l)
		case strings.Contains(l, "ptrace("), strings.Contains(l, "process_vm_writev("):
			t.Errorf("%s", l)
		default:
			ours++ // its own children are ended by a signal
		}
	}
	t.Logf("%d signals, all to children of its own", ours)
}

// BenchmarkDeadlock is a whole run on a deadlocked process of 131 threads.
func BenchmarkDeadlock(b *testing.B) {
	s := scenario.Start(b, "abba")
	exe := binary(b)
	time.Sleep(100 * time.Millisecond)
	for b.Loop() {
		out, _ := exec.Command(exe, strconv.Itoa(s.PID), "--json").Output()
		if !bytes.Contains(out, []byte(`"strength": "proved"`)) {
			b.Fatalf("%s", out)
		}
	}
}

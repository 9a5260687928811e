package realservers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/diagnose/report"
	"github.com/whyhang/whyhang/rules/rule"
)

// python is the interpreter that has the server's packages; make realservers
// sets it.
const python = "WHYHANG_LLAMACPP_PYTHON"

// llama is a running llama.cpp server.
type llama struct {
	cmd *exec.Cmd
	log string
}

func start(t *testing.T) *llama {
	t.Helper()
	interpreter := os.Getenv(python)
	if interpreter == "" {
		t.Skipf("%s is not set: run make realservers", python)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := &llama{log: filepath.Join(t.TempDir(), "server.log")}
	out, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.cmd = exec.Command(interpreter, "llamacpp_server.py", strconv.Itoa(port))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	return s
}

func (s *llama) waitReady(t *testing.T) {
	t.Helper()
	for range 600 {
		b, _ := os.ReadFile(s.log)
		if bytes.Contains(b, []byte("listening on http://")) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b, _ := os.ReadFile(s.log)
	t.Fatalf("the server did not come up:\n%s", b)
}

// whyhang runs the built command on the server and gives its JSON report.
func (s *llama) whyhang(t *testing.T, args ...string) *report.Report {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{strconv.Itoa(s.cmd.Process.Pid), "--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var r report.Report
	if jerr := json.Unmarshal(out, &r); jerr != nil {
		t.Fatalf("%v, %v\n%s\n%s", err, jerr, out, stderr.String())
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if code != r.ExitCode {
		t.Errorf("exit code %d, the report says %d", code, r.ExitCode)
	}
	t.Logf("%s/%s (%s) in %.0f ms: %s", r.Verdict, r.Cause, r.Strength, r.TookMS, r.Sentence)
	return &r
}

var built string

// binary builds whyhang once.
func binary(t *testing.T) string {
	t.Helper()
	if built != "" {
		return built
	}
	dir, err := os.MkdirTemp("", "whyhang-real-")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "whyhang")
	if b, err := exec.Command("go", "build", "-o", out, "../../cmd/whyhang").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	built = out
	return out
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// TestLlamaCPP is the life of a real server: ready and measured, passive,
// paused, continued, killed.
func TestLlamaCPP(t *testing.T) {
	s := start(t)
	s.waitReady(t)

	r := s.whyhang(t)
	if r.Verdict != rule.Ready || r.ExitCode != 0 || r.Strength != rule.Proved || r.Target.Engine != "llamacpp" {
		t.Fatalf("%s/%s: %s", r.Verdict, r.Cause, r.Sentence)
	}
	if n := len(r.Check.Exchanges); n != 2 || r.Check.Exchanges[1].Prompt != "What is 2+2?" {
		t.Errorf("the small model needs the plainer question; asked %d times: %+v", n, r.Check)
	}
	if r.Bench == nil || !r.Bench.Complete || r.Bench.SingleStream.ServerTokS == nil {
		t.Fatalf("bench %+v", r.Bench)
	}
	ours, its := r.Bench.SingleStream.DecodeTokS.Mean, *r.Bench.SingleStream.ServerTokS
	t.Logf("decode %.2f tok/s, the server's own clock says %.2f (%+.2f %%)", ours, its, 100*(ours-its)/its)
	if math.Abs(ours-its) > 0.03*its {
		t.Errorf("decode %.2f tok/s, the server's own clock says %.2f", ours, its)
	}
	if len(r.Logs) != 1 || r.Logs[0].ReadyLine == 0 {
		t.Errorf("log %+v", r.Logs)
	}

	if r := s.whyhang(t, "--passive"); r.Verdict != rule.Ready || r.Strength != rule.Strong || r.Check != nil {
		t.Errorf("passive: %s/%s: %s", r.Verdict, r.Cause, r.Sentence)
	}

	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r = s.whyhang(t)
	if r.Verdict != rule.Stalled || r.Cause != rule.Paused || !strings.Contains(fmt.Sprint(r.Next), "kill -CONT") {
		t.Errorf("stopped: %s/%s %v", r.Verdict, r.Cause, r.Next)
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if r := s.whyhang(t, "--no-bench"); r.Verdict != rule.Ready {
		t.Errorf("continued: %s/%s: %s", r.Verdict, r.Cause, r.Sentence)
	}

	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := s.whyhang(t); r.Verdict != rule.Gone || r.ExitCode != 8 {
		t.Errorf("killed: %s/%s: %s", r.Verdict, r.Cause, r.Sentence)
	}
	_ = s.cmd.Wait()
	if r := s.whyhang(t); r.Verdict != rule.Gone || r.Cause != rule.NoProcess {
		t.Errorf("reaped: %s/%s: %s", r.Verdict, r.Cause, r.Sentence)
	}
}

// TestLlamaCPPStart asks all the way through a start: it may be loading, and
// once it is up it is ready; it is never anything worse.
func TestLlamaCPPStart(t *testing.T) {
	s := start(t)
	for i := range 20 {
		r := s.whyhang(t, "--no-bench", "--window", "2s")
		switch r.Verdict {
		case rule.Ready:
			return
		case rule.Loading, rule.Unknown:
		default:
			t.Fatalf("look %d: %s/%s: %s", i, r.Verdict, r.Cause, r.Sentence)
		}
	}
	t.Error("never ready")
}

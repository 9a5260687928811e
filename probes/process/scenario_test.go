package process

import (
	"bufio"
	"context"

	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// buildDir holds the scenarios' executables and a copy of the test binary, for
// every user to run.
var buildDir string

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{ChildFiles: FilesChild})
	if os.Getenv(readAsUser) != "" {
		os.Exit(readerMain())
	}
	dir, err := os.MkdirTemp("", "whyhang-process-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var builds sync.Map // name to func() (string, error)

// build compiles testdata/scenarios/name.c, once for each test binary.
func build(tb testing.TB, name string, flags ...string) string {
	tb.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		tb.Skip("no C compiler (cc) to build scenarios with")
	}
	out := filepath.Join(buildDir, name+strings.Join(flags, ""))
	once, _ := builds.LoadOrStore(out, sync.OnceValue(func() error {
		args := append([]string{"-O1", "-pthread", "-o", out, "../../testdata/scenarios/" + name + ".c"}, flags...)
		if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("cc %s: %w\n%s", strings.Join(args, " "), err, b)
		}
		return os.Chmod(out, 0o755)
	}))
	if err := once.(func() error)(); err != nil {
		tb.Fatal(err)
	}
	return out
}

// scenario is a running one.
type scenario struct {
	PID   int
	Ready string // what it printed behind "ready"
	cmd   *exec.Cmd
	stdin io.Closer
}

// start builds and starts a scenario, waits until it is in position, and ends
// it with the test.
func start(tb testing.TB, name string, args ...string) *scenario {
	tb.Helper()
	return startAs(tb, nil, exec.Command(build(tb, name), args...))
}

// startAs starts cmd as another user, if one is given.
func startAs(tb testing.TB, user *syscall.Credential, cmd *exec.Cmd) *scenario {
	tb.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s := &scenario{PID: cmd.Process.Pid, cmd: cmd, stdin: stdin}
	tb.Cleanup(s.end)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if !ok {
		tb.Fatalf("%s: not ready: %q, %v", cmd.Path, line, err)
	}
	s.Ready = strings.TrimSpace(rest)
	return s
}

func (s *scenario) end() {
	s.stdin.Close()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// reader reads the real /proc.
func reader(tb testing.TB) *Reader {
	tb.Helper()
	r, err := NewReader("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// treeOf is the tree of a scenario.
func treeOf(tb testing.TB, r *Reader, pid int) []evidence.Process {
	tb.Helper()
	procs, run := r.Tree(context.Background(), pid, TreeOptions{})
	if len(procs) == 0 {
		tb.Fatalf("no tree of %d: %+v", pid, run)
	}
	return procs
}

// eventually repeats check until it holds.
func eventually(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if check() {
			return
		}
	}
	tb.Fatal("never happened: " + what)
}

func isRoot() bool { return os.Geteuid() == 0 }

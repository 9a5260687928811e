package scenario

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// TB is what a scenario needs of a test.
type TB interface {
	Helper()
	Skip(...any)
	Fatal(...any)
	Fatalf(string, ...any)
	Cleanup(func())
}

// Dir makes the directory of the executables, readable for every user, once
// for each test binary. Remove removes it; TestMain calls that last.
var Dir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "whyhang-scenarios-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return dir, err
})

// Remove removes all executables.
func Remove() {
	if dir, err := Dir(); err == nil {
		os.RemoveAll(dir)
	}
}

var builds sync.Map // path of an executable to func() error

// Build compiles testdata/scenarios/name.c, once for each test binary, and
// gives the executable's path. Without a C compiler the test is skipped.
func Build(tb TB, name string, flags ...string) string {
	tb.Helper()
	return build(tb, "cc", name, "", flags)
}

// BuildMusl does the same against musl. Without musl-gcc the test is skipped.
func BuildMusl(tb TB, name string, flags ...string) string {
	tb.Helper()
	return build(tb, "musl-gcc", name, "-musl", flags)
}

func build(tb TB, compiler, name, suffix string, flags []string) string {
	tb.Helper()
	cc, err := exec.LookPath(compiler)
	if err != nil {
		tb.Skip("no C compiler (" + compiler + ") to build scenarios with")
	}
	dir, err := Dir()
	if err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(dir, name+suffix+strings.Join(flags, ""))
	_, self, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(self), "../../../testdata/scenarios", name+".c")
	once, _ := builds.LoadOrStore(out, sync.OnceValue(func() error {
		args := append([]string{"-O1", "-pthread", "-o", out, source}, flags...)
		if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", compiler, strings.Join(args, " "), err, b)
		}
		return os.Chmod(out, 0o755)
	}))
	if err := once.(func() error)(); err != nil {
		tb.Fatal(err)
	}
	return out
}

// Process is a scenario that runs.
type Process struct {
	PID int
	// Ready is what it printed behind "ready".
	Ready string
	Cmd   *exec.Cmd
	Stdin io.WriteCloser
}

// Start builds and starts a scenario, waits until it is in position, and ends
// it with the test.
func Start(tb TB, name string, args ...string) *Process {
	tb.Helper()
	return StartCmd(tb, nil, exec.Command(Build(tb, name), args...))
}

// StartCmd starts cmd, as another user if one is given, and waits for its
// "ready" line. A cmd without a Stdout of its own is read for that line; one
// with a Stdout has to say it on descriptor 3.
func StartCmd(tb TB, user *syscall.Credential, cmd *exec.Cmd) *Process {
	tb.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	says, child, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { says.Close() })
	if cmd.Stdout == nil {
		cmd.Stdout = child
	} else {
		cmd.ExtraFiles = []*os.File{child}
	}
	err = startSteady(cmd)
	child.Close()
	if err != nil {
		tb.Fatal(err)
	}
	p := &Process{PID: cmd.Process.Pid, Cmd: cmd, Stdin: stdin}
	tb.Cleanup(p.End)
	lines := bufio.NewReader(says)
	line, err := lines.ReadString('\n')
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if !ok {
		tb.Fatalf("%s: not ready: %q, %v", cmd.Path, line, err)
	}
	p.Ready = strings.TrimSpace(rest)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return p
}

// End ends the process.
func (p *Process) End() {
	p.Stdin.Close()
	_ = p.Cmd.Process.Kill()
	_ = p.Cmd.Wait()
}

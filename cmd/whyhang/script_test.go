package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/demo"
	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// The test binary plays whyhang, its children, and its demo processes.
func TestMain(m *testing.M) {
	probes.ChildMain(diagnose.Children())
	demo.ChildMain()
	testscript.Main(withCleanUp{m}, map[string]func(){"whyhang": main})
}

type withCleanUp struct{ *testing.M }

func (m withCleanUp) Run() int {
	defer scenario.Remove()
	return m.M.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			wd, err := os.Getwd()
			e.Setenv("SNAPSHOTS", wd+"/../../testdata/snapshots")
			e.Setenv("SCENARIOS", wd+"/../../testdata/scenarios")
			e.Setenv("NO_COLOR", "1")
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			e.Setenv("PORT", strconv.Itoa(l.Addr().(*net.TCPAddr).Port)) // free a moment ago
			return l.Close()
		},
		Condition: func(cond string) (bool, error) {
			if cond == "cgo" {
				return hasCgo, nil
			}
			return false, fmt.Errorf("no condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"program": program,
			"zombie":  zombie,
			"half":    half,
		},
	})
}

// exits runs a command and wants this exit code: "exits 3 whyhang demo
// loading".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want, _ := strconv.Atoi(args[0]); code != want {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// program starts a scenario that lives as long as the script, and puts its PID
// into the variable: "program PID abba 10".
func program(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: program VARIABLE SCENARIO [argument…]")
	}
	p := scenario.Start(scriptTB{ts}, args[1], args[2:]...)
	ts.Setenv(args[0], strconv.Itoa(p.PID))
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(p.PID) + "/task")
	ts.Check(err)
	ts.Setenv("TID", tasks[len(tasks)-1].Name())
}

// scriptTB is a script as a scenario sees a test.
type scriptTB struct{ ts *testscript.TestScript }

func (s scriptTB) Helper()                           {}
func (s scriptTB) Skip(args ...any)                  { s.ts.Fatalf("skip: %v", args) }
func (s scriptTB) Fatal(args ...any)                 { s.ts.Fatalf("%v", args) }
func (s scriptTB) Fatalf(format string, args ...any) { s.ts.Fatalf(format, args...) }
func (s scriptTB) Cleanup(f func())                  { s.ts.Defer(f) }

// zombie leaves a child that has exited with code 3 and is not reaped.
func zombie(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("sh", "-c", "exit 3")
	ts.Check(cmd.Start())
	for {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat")
		ts.Check(err)
		if strings.Contains(string(b), ") Z ") {
			break
		}
	}
	ts.Setenv(args[0], strconv.Itoa(cmd.Process.Pid))
	ts.Defer(func() { _ = cmd.Wait() })
}

// half cuts a file in half.
func half(ts *testscript.TestScript, _ bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b[:len(b)/2], 0o600))
}

package process

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

const pythonScript = "../../testdata/scenarios/python_locks.py"

// A cpython is one interpreter on this machine.
type cpython struct {
	exe, version string
	freeThreaded bool
}

// cpythons are the interpreters that are found: those of pyenv, those in PATH,
// and those that WHYHANG_TEST_PYTHONS names, separated by colons.
var cpythons = sync.OnceValue(func() []cpython {
	exes := filepath.SplitList(os.Getenv("WHYHANG_TEST_PYTHONS"))
	if home, err := os.UserHomeDir(); err == nil {
		found, _ := filepath.Glob(home + "/.pyenv/versions/3.1*/bin/python3")
		exes = append(exes, found...)
	}
	for _, name := range []string{"python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14", "python3.13t", "python3.14t"} {
		if exe, err := exec.LookPath(name); err == nil {
			exes = append(exes, exe)
		}
	}
	// A static executable, where Debian has one.
	exes = append(exes, "/usr/bin/python3")
	var all []cpython
	seen := map[string]bool{}
	for _, exe := range exes {
		const ask = "import sys, ctypes; print(sys.executable, '%d.%d' % sys.version_info[:2], not getattr(sys, '_is_gil_enabled', lambda: True)(), sys.version_info >= (3, 10))"
		out, err := exec.Command(exe, "-c", ask).Output()
		word := strings.Fields(string(out))
		// pyenv's shims lead to one of its versions.
		if err != nil || len(word) != 4 || strings.Contains(exe, "/shims/") || word[3] != "True" || seen[word[0]] {
			continue
		}
		seen[word[0]] = true
		all = append(all, cpython{exe: exe, version: word[1], freeThreaded: word[2] == "True"})
	}
	return all
})

// eachPython runs a test for every interpreter.
func eachPython(t *testing.T, test func(t *testing.T, py cpython)) {
	t.Helper()
	if len(cpythons()) == 0 {
		t.Skip("no CPython 3.10 or later with ctypes here (pyenv, PATH, WHYHANG_TEST_PYTHONS)")
	}
	for _, py := range cpythons() {
		name := py.version
		if py.freeThreaded {
			name += "t"
		}
		name += " " + py.exe
		t.Run(name, func(t *testing.T) { test(t, py) })
	}
}

func (py cpython) minor() string { return strings.TrimPrefix(py.version, "3.") }

// A pythonScenario is a running script and how it is read.
type pythonScenario struct {
	t     *testing.T
	r     *Reader
	procs []evidence.Process
	// locks are the addresses that the script told.
	locks []string
}

// lockThread keeps the thread that starts a process for the test: the process
// is killed when that thread ends (PR_SET_PDEATHSIG), and a goroutine that gives
// up its thread may have got that one.
func lockThread(tb testing.TB) {
	runtime.LockOSThread()
	tb.Cleanup(runtime.UnlockOSThread)
}

func startPython(t *testing.T, py cpython, args ...string) *pythonScenario {
	t.Helper()
	lockThread(t)
	s := scenario.StartCmd(t, nil, exec.Command(py.exe, append([]string{pythonScript}, args...)...))
	r := reader(t)
	return &pythonScenario{t: t, r: r, procs: treeOf(t, r, s.PID), locks: strings.Fields(s.Ready)}
}

// look is one reading: the interpreter, its threads by the function in the
// script that they are in, and the waits by thread.
func (s *pythonScenario) look() (evidence.PythonProcess, map[string]evidence.PythonThread, map[int]evidence.Wait) {
	s.t.Helper()
	look, run := s.r.Waits(context.Background(), s.procs)
	// No memory is read while nobody waits.
	for deadline := time.Now().Add(5 * time.Second); len(look.Python) == 0 && time.Now().Before(deadline); {
		look, run = s.r.Waits(context.Background(), s.procs)
	}
	if run.Status != evidence.OK || len(look.Python) != 1 {
		s.t.Fatalf("run %+v, %d interpreters", run, len(look.Python))
	}
	p := look.Python[0]
	if p.Unread != "" {
		s.t.Fatalf("unread: %s", p.Unread)
	}
	threads := map[string]evidence.PythonThread{}
	for _, th := range p.Threads {
		for _, f := range th.Frames {
			if filepath.Base(f.File) == filepath.Base(pythonScript) {
				// Since 3.11 names say where a function stands.
				threads[f.Function[strings.LastIndexByte(f.Function, '.')+1:]] = th
			}
		}
	}
	waits := map[int]evidence.Wait{}
	for _, w := range look.Waits {
		if w.Futex != nil {
			waits[w.TID] = w
		}
	}
	return p, threads, waits
}

// lockOf is what a thread waits for; the test fails if that is nothing.
func (s *pythonScenario) lockOf(waits map[int]evidence.Wait, th evidence.PythonThread) evidence.PythonLock {
	s.t.Helper()
	if w := waits[th.TID]; w.Futex != nil && w.Futex.Python != nil {
		return *w.Futex.Python
	}
	s.t.Fatalf("thread %d (%+v) waits for no Python lock: %+v", th.TID, th.Frames, waits[th.TID])
	return evidence.PythonLock{}
}

// line is the number of the line of the script that holds text, the first
// behind the line that holds after.
func line(t *testing.T, after, text string) int {
	t.Helper()
	b, err := os.ReadFile(pythonScript)
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	for n, l := range bytes.Split(b, []byte("\n")) {
		begun = begun || bytes.Contains(l, []byte(after))
		if begun && bytes.Contains(l, []byte(text)) {
			return n + 1
		}
	}
	t.Fatalf("no %q after %q in the script", text, after)
	return 0
}

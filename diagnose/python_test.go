package diagnose

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// pythons are the interpreters found here, at most one of each version from
// 3.10 on.
func pythons(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	var found []string
	home, _ := os.UserHomeDir()
	candidates, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.1[0-9].*/bin/python3"))
	if p, err := exec.LookPath("python3"); err == nil {
		candidates = append(candidates, p)
	}
	for _, p := range candidates {
		out, err := exec.Command(p, "-c", "import sys; print('3.%d' % sys.version_info[1] if sys.version_info >= (3, 10) else '')").Output()
		if v := strings.TrimSpace(string(out)); err == nil && v != "" && !seen[v] {
			seen[v] = true
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Skip("no Python from 3.10 on")
	}
	return found
}

func TestPythonDeadlocks(t *testing.T) {
	const script = "../testdata/scenarios/python_locks.py"
	for i, python := range pythons(t) {
		for _, tc := range []struct {
			mode     string
			cause    rule.Cause
			strength rule.Strength
			place    string
		}{
			{"rlock-abba", rule.LockCycle, rule.Proved, "python_locks.py:"},
			{"lock-abba", rule.LockCycle, rule.Strong, "python_locks.py:"},
			{"gil-mutex", rule.GILHeld, rule.Proved, "has_gil_wants_mutex)"},
			{"rlock-join", rule.LockCycle, rule.Strong, "python_locks.py:"}, // its main thread handles SIGINT
			{"join-cycle", rule.LockCycle, rule.Proved, "python_locks.py:"},
			{"forked", rule.OrphanedLock, rule.Strong, "python_locks.py:"},
		} {
			if i > 0 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", i, tc.mode), func(t *testing.T) {
				t.Parallel()
				s := scenario.StartCmd(t, nil, exec.Command(python, script, tc.mode))
				time.Sleep(500 * time.Millisecond) // one says ready just before it is so
				o := quick(s.PID)
				if tc.mode != "lock-abba" { // that is strong if nobody runs for seconds
					o.Window = 1500 * time.Millisecond
				}
				j := diagnosed(t, o)
				expect(t, j, rule.Deadlocked, tc.cause)
				if j.Strength != tc.strength || !strings.Contains(j.Sentence, tc.place) {
					t.Errorf("%s (%s): %s", python, j.Strength, j.Sentence)
				}
			})
		}
	}
}

// A C call that keeps the GIL may return: stalled, with the call and the line.
func TestPythonGILHeld(t *testing.T) {
	python := pythons(t)[0]
	s := scenario.StartCmd(t, nil, exec.Command(python, "../testdata/scenarios/python_locks.py", "gil-native"))
	time.Sleep(500 * time.Millisecond)
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.GILHeld)
	for _, want := range []string{"asleep in pause", "holds_the_gil", "4 other threads wait"} {
		if !strings.Contains(j.Sentence, want) {
			t.Errorf("no %q: %s", want, j.Sentence)
		}
	}
}

// Healthy programs that look like these at one instant.
func TestPythonTwins(t *testing.T) {
	for _, python := range pythons(t)[:1] {
		for _, args := range [][]string{{"queue-idle", "20"}, {"rlock-busy", "8"}, {"lock-busy", "8"}, {"gil-busy", "4"}, {"condition-wait"}, {"timed-acquire"}, {"join-sleeps"}, {"handoff"}} {
			t.Run(args[0], func(t *testing.T) {
				t.Parallel()
				s := scenario.StartCmd(t, nil, exec.Command(python, append([]string{"../testdata/scenarios/python_locks.py"}, args...)...))
				o := quick(s.PID)
				o.Window = 2500 * time.Millisecond
				j := diagnosed(t, o)
				if j.Verdict == rule.Deadlocked || j.Cause == rule.GILHeld {
					t.Errorf("%s/%s (%s): %s", j.Verdict, j.Cause, j.Strength, j.Sentence)
				}
			})
		}
	}
}

package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// engineTree starts the stand-in for SGLang's process tree, its log in a file,
// and gives the PIDs of its children. A program may be named to run it.
func engineTree(t *testing.T, mode string, ranks int, under ...string) (*scenario.Process, []int) {
	t.Helper()
	python := pythons(t)[0]
	dir := t.TempDir()
	weights := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(weights, make([]byte, 64<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	packages, err := filepath.Abs("../testdata/scenarios/engine")
	if err != nil {
		t.Fatal(err)
	}
	args := append(under, python, "-m", "sglang.launch_server", "--model-path", "fake", "--tp", strconv.Itoa(ranks), "--port", strconv.Itoa(freePort(t)), "--scenario", mode)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "READY_FD=3", "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "FAKE_WEIGHTS="+weights)
	p := scenario.StartCmd(t, nil, cmd)
	var kids []int
	for _, word := range strings.Fields(p.Ready) {
		pid, _ := strconv.Atoi(word)
		kids = append(kids, pid)
	}
	if mode == "orphans" { // the others end with their launcher
		t.Cleanup(func() {
			for _, pid := range kids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
	return p, kids
}

func TestRanks(t *testing.T) {
	for _, tc := range []struct {
		mode     string
		ranks    int
		verdict  rule.Verdict
		cause    rule.Cause
		strength rule.Strength
		says     string
	}{
		// A part is killed; the front goes on answering.
		{"reaped", 2, rule.Broken, rule.DeadChild, rule.Strong, "scheduler TP1 is not there"},
		{"zombie", 2, rule.Broken, rule.DeadChild, rule.Strong, "killed by signal 9"},
		{"dies", 2, rule.Broken, rule.DeadChild, rule.Strong, "killed by signal 9"},
		// A rank is missing, or not there yet.
		{"absent", 3, rule.Deadlocked, rule.MissingRank, rule.Strong, "2 of 3 have met"},
		{"early", 3, rule.Loading, "", 0, ""},
		{"met", 3, rule.Loading, "", 0, ""},
		// A peer that nobody serves.
		{"syn", 2, rule.Stalled, rule.NoMovement, rule.Strong, "tries to reach 127.0.0.1:"},
		{"refused", 2, rule.Stalled, rule.NoMovement, rule.Strong, "nobody listens there"},
		{"placement", 2, rule.Stalled, rule.NoMovement, rule.Strong, "It waits for Ray to place its workers"},
		// Out of step, and only late.
		{"step", 2, rule.Deadlocked, rule.RankMismatch, 0, "and only they themselves could send"},
		{"step-epoll", 2, rule.Deadlocked, rule.RankMismatch, rule.Strong, "each wait to receive from the other"},
		{"step-slow", 2, rule.Stalled, "", 0, ""},
		{"wait", 2, rule.Loading, "", 0, ""},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			s, _ := engineTree(t, tc.mode, tc.ranks)
			if tc.mode == "syn" {
				time.Sleep(3 * time.Second) // until the first packet was sent twice again
			}
			o := quick(s.PID)
			o.Passive = tc.mode == "up"
			j := diagnosed(t, o)
			cause := tc.cause
			if cause == "" {
				cause = j.Cause
			}
			expect(t, j, tc.verdict, cause)
			if tc.strength != 0 && j.Strength != tc.strength || !strings.Contains(j.Sentence, tc.says) {
				t.Errorf("%s, no %q: %s", j.Strength, tc.says, j.Sentence)
			}
			noDeadlock(t, j, tc.verdict)
			t.Logf("%s/%s %s %s", j.Verdict, j.Cause, j.Strength, j.Sentence)
			for _, f := range j.Findings {
				t.Logf("   %s %s %s", f.Rule, f.Strength, f.Says)
			}
		})
	}
}

// noDeadlock: none but the dead are called deadlocked or broken, also beside the
// verdict.
func noDeadlock(t *testing.T, j *rules.Judgement, verdict rule.Verdict) {
	t.Helper()
	for _, f := range j.Findings {
		bad := f.Verdict == rule.Deadlocked || f.Verdict == rule.Broken
		if bad && f.Strength >= rule.Strong && f.Verdict != verdict && verdict != rule.Broken {
			t.Errorf("%s (%s): %s", f.Rule, f.Strength, f.Says)
		}
	}
}

// The twin of the front whose engine is gone: all parts live.
func TestRanksUp(t *testing.T) {
	s, _ := engineTree(t, "up", 2)
	o := quick(s.PID)
	o.Passive = true
	expect(t, diagnosed(t, o), rule.Ready, rule.Idle)
}

// A rank that is stopped is named, whatever the others do.
func TestStoppedRank(t *testing.T) {
	s, kids := engineTree(t, "met", 2)
	if err := syscall.Kill(kids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.Paused) // though the other one reads on
	if !strings.Contains(j.Sentence, "scheduler TP1") {
		t.Error(j.Sentence)
	}
}

// A script that is stopped, above a server that loads, is no pause of it; the
// server itself, stopped below a script, is.
func TestStoppedScript(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, stops string
		v           rule.Verdict
	}{
		{"the script", "kill -STOP $$", rule.Loading},
		{"the server", "sleep 1; kill -STOP $!; wait", rule.Stalled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStarting(t)
			p := s.startBelow(t, tc.stops, "read=400/8")
			time.Sleep(1500 * time.Millisecond)
			if j := diagnosed(t, quick(p.PID)); j.Verdict != tc.v {
				t.Errorf("%s/%s: %s", j.Verdict, j.Cause, j.Sentence)
			}
		})
	}
}

// A rank that has outlived its launcher is the child of an init; so is no rank
// whose launcher lives.
func TestLeftBehind(t *testing.T) {
	_, kids := engineTree(t, "orphans", 3, scenario.Build(t, "subreaper"))
	time.Sleep(2 * time.Second) // the launcher says which ranks there are, and ends
	o := quick(kids[1])
	o.Window = 3 * time.Second
	j := diagnosed(t, o)
	expect(t, j, rule.Broken, rule.DeadChild)
	if !strings.Contains(j.Sentence, "scheduler TP1") || !strings.Contains(j.Sentence, "left behind") || !strings.Contains(j.Sentence, "tini") {
		t.Error(j.Sentence)
	}
	_, kids = engineTree(t, "absent", 3, scenario.Build(t, "subreaper"))
	expect(t, diagnosed(t, quick(kids[1])), rule.Deadlocked, rule.MissingRank)
}

// Asked for a rank, it is the whole server that is judged.
func TestAskedForARank(t *testing.T) {
	s, kids := engineTree(t, "absent", 3)
	j := diagnosed(t, quick(kids[1]))
	expect(t, j, rule.Deadlocked, rule.MissingRank)
	if j.Case.Target.PID != s.PID || j.Case.Target.AskedPID != kids[1] {
		t.Errorf("%+v", j.Case.Target)
	}
}

package diagnose

import (
	"net"
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
// and gives the PIDs of its children.
func engineTree(t *testing.T, mode string, ranks int) (*scenario.Process, []int) {
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
	cmd := exec.Command(python, "-m", "sglang.launch_server", "--model-path", "fake", "--tp", strconv.Itoa(ranks), "--port", strconv.Itoa(freePort(t)), "--scenario", mode)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "READY_FD=3", "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=1", "FAKE_WEIGHTS="+weights)
	p := scenario.StartCmd(t, nil, cmd)
	var kids []int
	for _, word := range strings.Fields(p.Ready) {
		pid, _ := strconv.Atoi(word)
		kids = append(kids, pid)
	}
	return p, kids
}

// freePort is a port of the loopback that nobody uses now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
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

// A rank that is stopped while others wait for it is named.
func TestStoppedRank(t *testing.T) {
	s, kids := engineTree(t, "met", 2)
	if err := syscall.Kill(kids[1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	j := diagnosed(t, quick(s.PID))
	for _, f := range j.Findings {
		if f.Rule == "paused" && strings.Contains(f.Says, "scheduler TP1") {
			return
		}
	}
	t.Errorf("%s/%s: %s", j.Verdict, j.Cause, j.Sentence)
}

package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// A start script that asks again and again whether its server answers moves for
// ever; whether the server does is another matter.
func TestScriptThatAsks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, steps string
		v           rule.Verdict
	}{
		{"beside one that hangs", "stand=300", rule.Stalled},
		{"beside one that loads", "read=400/8", rule.Loading},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newStarting(t).startBelow(t, `while :; do sh -c ': ask; exec sleep 0.2'; done`, tc.steps)
			j := diagnosed(t, quick(p.PID))
			if j.Verdict != tc.v {
				t.Errorf("%s %s: %s", j.Verdict, j.Cause, j.Sentence)
			}
		})
	}
}

// startBelow is start below a script that does something else as well.
func (s starting) startBelow(t testing.TB, script, steps string) *scenario.Process {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("sh", "-c", `python3 "$0" serve "$1" --port "$2" & `+script, filepath.Join(s.dir, "vllm"), filepath.Join(s.dir, "model"), strconv.Itoa(s.port))
	cmd.Env = append(os.Environ(), "START_STEPS="+steps, "READY_FD=3")
	cmd.Stdout, cmd.Stderr = log, log
	return scenario.StartCmd(t, nil, cmd)
}

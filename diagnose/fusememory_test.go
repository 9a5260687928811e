package diagnose

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// The store of the weights is dead, threads sleep in page faults on its file,
// and words and a stack lie there: the circle beside it is proved all the same.
func TestDeadlockBesideDeadStore(t *testing.T) {
	exe := scenario.Build(t, "fuse_memory")
	if os.Geteuid() != 0 {
		t.Skip("fuse_memory needs root")
	}
	try := exec.Command(exe, t.TempDir())
	try.Stdin = strings.NewReader("")
	if out, _ := try.Output(); strings.HasPrefix(string(out), "cannot") {
		t.Skip("fuse_memory " + strings.TrimSpace(string(out)))
	}
	for _, mode := range []string{"plain", "code"} {
		t.Run(mode, func(t *testing.T) {
			s := scenario.Start(t, "fuse_memory", t.TempDir(), mode)
			pid, err := strconv.Atoi(s.Ready)
			if err != nil {
				t.Fatal(err)
			}
			j := diagnosed(t, quick(pid))
			expect(t, j, rule.Deadlocked, rule.LockCycle)
			if j.Strength != rule.Proved {
				t.Errorf("only %s: %s", j.Strength, j.Sentence)
			}
			if j.Carried == nil || len(j.Carried.Culprits) != 2 {
				t.Fatalf("carried by %+v", j.Carried)
			}
			names := map[string]bool{}
			for _, c := range j.Carried.Culprits {
				names[c.Name] = true
			}
			if !names["ab"] || !names["ba"] {
				t.Errorf("culprits %+v", j.Carried.Culprits)
			}
			if j.Case.TookMS > 15000 {
				t.Errorf("took %.0f ms", j.Case.TookMS)
			}
			for _, p := range j.Case.Probes {
				if p.Status != evidence.OK {
					t.Logf("%s %s: %s", p.Name, p.Status, p.Detail)
				}
			}
			t.Logf("%s; took %.0f ms", j.Sentence, j.Case.TookMS)
		})
	}
}

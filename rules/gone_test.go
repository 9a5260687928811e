package rules_test

import (
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

// Whoever reads "gone" at night wants to know why it went.
func TestGoneNamesThePlacesThatSayWhy(t *testing.T) {
	logged := func(state evidence.TargetState, status *int) *snap {
		b := vllmServer().log("vllm-0.32-cpu-first-start", 60, 1)
		b.s.Logs[0].Path = "/var/log/the server's log"
		b.s.Target.State, b.s.Target.WaitStatus = state, status
		return b
	}
	tail := `tail -n 60 '/var/log/the server'\''s log'`
	for name, c := range map[string]struct {
		b    *snap
		want []string
	}{
		"nobody knows how": {logged(evidence.TargetExited, nil), []string{tail, "dmesg"}},
		"killed":           {logged(evidence.TargetZombie, ptr(9)), []string{tail, "dmesg"}},
		"by its own will":  {logged(evidence.TargetZombie, ptr(256)), []string{tail}},
		"was never there":  {logged(evidence.TargetAbsent, nil), []string{"pgrep"}},
	} {
		var got []string
		for _, s := range rules.Judge(c.b.done()).Next {
			got = append(got, s.Command)
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: next is %q, want %q", name, got, c.want)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(got[i], w) {
				t.Errorf("%s: next is %q, want %q", name, got[i], w)
			}
		}
	}
}

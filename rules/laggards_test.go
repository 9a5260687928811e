package rules_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/rules/rule"
)

// In the logs of servers that came up no rank is left behind at the end, and in
// the middle of the incident's load those are named that were.
func TestLaggards(t *testing.T) {
	for _, tc := range []struct {
		log    string
		lines  int64
		phase  string
		behind []string
	}{
		{"sglang-0.5.23-cpu-tp2-debug", 63, "communicator", []string{"TP1"}},
		{"sglang-0.5.23-cpu-tp2-debug", 116, "weights", []string{"TP1"}},
		{"sglang-0.5.23-cpu-tp2-debug", 971, "", nil},
		{"sglang-0.5.23-cpu-tp1", 1 << 30, "", nil},
		{"vllm-0.32-cpu-first-start", 101, "", nil},
		{"incident-sglang", 1 << 30, "", nil},
	} {
		server := sglangServer(2, 2)
		if strings.HasPrefix(tc.log, "vllm") {
			server = vllmServer()
		}
		c := rule.NewCase(server.log(tc.log, tc.lines, 1).done())
		phase, behind, ahead := c.Phases.Laggards()
		if string(phase) != tc.phase || !slices.Equal(behind, tc.behind) {
			t.Errorf("%s at line %d: %s, behind %v, ahead %v", tc.log, tc.lines, phase, behind, ahead)
		}
	}
}

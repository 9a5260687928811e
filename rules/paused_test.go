package rules_test

import (
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

// pausedJob is vLLM of which every process is stopped.
func pausedJob() *evidence.Snapshot {
	b := vllmServer()
	stopped := map[int]moves{}
	for _, p := range b.s.Processes {
		stopped[p.PID] = moves{state: "T"}
	}
	return b.frames(stopped, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
}

func TestAPausedJobIsContinuedAsAWhole(t *testing.T) {
	j := rules.Judge(pausedJob())
	if len(j.Next) == 0 || j.Next[0].Command != "kill -CONT 9414 10226 10239 10240 10100" {
		t.Errorf("next is %v", j.Next)
	}
}

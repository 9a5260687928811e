package facts

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// sampled is a snapshot with a real log of testdata/logs, as it was when it had
// so many lines.
func sampled(t *testing.T, name string, lines int64) *evidence.Snapshot {
	t.Helper()
	var l evidence.Log
	b, err := os.ReadFile("../../testdata/logs/" + name + ".log.json")
	if err == nil {
		err = json.Unmarshal(b, &l)
	}
	if err != nil {
		t.Fatal(err)
	}
	var kept []evidence.Mark
	for _, m := range l.Marks {
		if m.First.Line > lines {
			continue
		}
		if m.Last != nil && m.Last.Line > lines {
			m.Last = nil
		}
		kept = append(kept, m)
	}
	l.Marks = kept
	return &evidence.Snapshot{Logs: []evidence.Log{l}}
}

// The phase that the log shows at a moment of a real start.
func TestPhaseOfSamples(t *testing.T) {
	for _, tc := range []struct {
		log, engine string
		line        int64
		phase       evidence.Phase
		ready       bool
	}{
		{"vllm-0.32-cpu-first-start", "vllm", 8, evidence.PhaseStarting, false},
		{"vllm-0.32-cpu-first-start", "vllm", 33, evidence.PhaseCommunicator, false},
		{"vllm-0.32-cpu-first-start", "vllm", 37, evidence.PhaseWeights, false},
		{"vllm-0.32-cpu-first-start", "vllm", 42, evidence.PhaseWeights, false},
		{"vllm-0.32-cpu-first-start", "vllm", 47, evidence.PhaseGraphCompile, false},
		{"vllm-0.32-cpu-first-start", "vllm", 50, evidence.PhaseGraphCompile, false},
		{"vllm-0.32-cpu-first-start", "vllm", 62, evidence.PhaseWarmUp, false},
		{"vllm-0.32-cpu-first-start", "vllm", 101, evidence.PhaseReady, true},
		{"sglang-0.5.23-cpu-tp2-debug", "sglang", 60, evidence.PhaseCommunicator, false},
		{"sglang-0.5.23-cpu-tp2-debug", "sglang", 114, evidence.PhaseWeights, false},
		{"sglang-0.5.23-cpu-tp2-debug", "sglang", 500, evidence.PhaseWarmUp, false},
		{"sglang-0.5.23-cpu-tp2-debug", "sglang", 975, evidence.PhaseReady, true},
		{"incident-sglang", "sglang", 80, evidence.PhaseWeights, false},
		{"incident-sglang", "sglang", 311, evidence.PhaseWarmUp, false},
		{"incident-sglang", "sglang", 312, evidence.PhaseReady, true},
		{"llamacpp-2026-10-start-and-two-requests", "llamacpp", 7, evidence.PhaseWeights, false},
		{"llamacpp-2026-10-start-and-two-requests", "llamacpp", 27, evidence.PhaseReady, true},
	} {
		tl := timelineOf(sampled(t, tc.log, tc.line), Engine{Known: engines.ByID(tc.engine)})
		if tl.Current != tc.phase || (tl.Ready != nil) != tc.ready {
			t.Errorf("%s, line %d: %s, ready %v", tc.log, tc.line, tl.Current, tl.Ready != nil)
		}
	}
}

// An orderly end takes the ready line back.
func TestStoppingIsNotReady(t *testing.T) {
	tl := timelineOf(sampled(t, "vllm-0.32-cpu-first-start", 137), Engine{Known: engines.ByID("vllm")})
	if tl.Ready != nil || tl.Stopping == nil {
		t.Errorf("ready %v, stopping %v", tl.Ready, tl.Stopping)
	}
}

// uvicorn's "Application startup complete." is vLLM's ready line and not
// SGLang's: a server of another engine, or of none, is not ready by it.
func TestAnotherEnginesReadyLine(t *testing.T) {
	s := sampled(t, "vllm-0.32-cpu-first-start", 101)
	for _, e := range []Engine{{}, {Known: engines.ByID("sglang")}} {
		if tl := timelineOf(s, e); tl.Ready != nil {
			t.Errorf("ready by line %d", tl.Ready.Hit.Line)
		}
	}
}

func TestRanksBehind(t *testing.T) {
	tl := timelineOf(sampled(t, "incident-sglang", 92), Engine{Known: engines.ByID("sglang")})
	behind, ahead := tl.Behind(evidence.PhaseWeights)
	if !slices.Equal(behind, []string{"TP4", "TP5", "TP6", "TP7"}) || len(ahead) != 4 || tl.Ended(evidence.PhaseWeights) {
		t.Errorf("behind %v, ahead %v", behind, ahead)
	}
	tl = timelineOf(sampled(t, "incident-sglang", 96), Engine{Known: engines.ByID("sglang")})
	if !tl.Ended(evidence.PhaseWeights) {
		t.Error("all eight ranks have ended")
	}
}

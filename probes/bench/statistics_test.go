package bench

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/whyhang/whyhang/probes/evidence"
)

var near = cmpopts.EquateApprox(0, 0.0005)

// The wanted numbers are from the tables of Student's t (two-sided, 95 %) and
// from numpy.
func TestEstimate(t *testing.T) {
	for _, tc := range []struct {
		x    []float64
		want evidence.Estimate
	}{
		{nil, evidence.Estimate{}},
		{[]float64{82.5}, evidence.Estimate{Mean: 82.5, N: 1}},
		{[]float64{1, 2, 3}, evidence.Estimate{Mean: 2, Std: 1, CV: 0.5, SE: 0.5774, TCritical: 4.3027, CILow: -0.4841, CIHigh: 4.4841, N: 3}},
		{[]float64{26.7, 27.0, 27.3}, evidence.Estimate{Mean: 27, Std: 0.3, CV: 0.0111, SE: 0.1732, TCritical: 4.3027, CILow: 26.2548, CIHigh: 27.7452, N: 3}},
		{[]float64{10, 12, 11, 13}, evidence.Estimate{Mean: 11.5, Std: 1.29099, CV: 0.11226, SE: 0.6455, TCritical: 3.1824, CILow: 9.4457, CIHigh: 13.5543, N: 4}},
		{[]float64{10, 12, 11, 13, 14}, evidence.Estimate{Mean: 12, Std: 1.5811, CV: 0.13176, SE: 0.7071, TCritical: 2.7764, CILow: 10.0368, CIHigh: 13.9632, N: 5}},
		{[]float64{0, 0}, evidence.Estimate{TCritical: 12.7062, N: 2}},
	} {
		got := estimate(tc.x)
		if diff := cmp.Diff(tc.want, got, near); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.x, diff)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Errorf("%v: %v", tc.x, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	x := []float64{15, 20, 35, 40, 50}
	for p, want := range map[float64]float64{0: 15, 0.05: 16, 0.3: 23, 0.4: 29, 0.5: 35, 0.95: 48, 0.99: 49.6, 1: 50} {
		if got := quantile(p, x); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	if got := quantile(0.5, []float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("unsorted: %v", got)
	}
	if got := quantile(0.99, []float64{7}); got != 7 {
		t.Errorf("one value: %v", got)
	}
	if !math.IsNaN(quantile(0.5, nil)) {
		t.Error("no value has a median")
	}
}

func TestScatters(t *testing.T) {
	for _, tc := range []struct {
		x    []float64
		want bool
	}{
		{nil, true}, {[]float64{80}, true},
		{[]float64{80, 80, 80}, false},
		{[]float64{79, 80, 81}, false}, // half width 2.48, 3.1 %
		{[]float64{78, 80, 82}, true},  // 4.97, 6.2 %
	} {
		if got := scatters(estimate(tc.x)); got != tc.want {
			t.Errorf("%v: %v", tc.x, got)
		}
	}
}

func TestDecodeRate(t *testing.T) {
	second := func(e evidence.Exchange) evidence.Exchange { e.TTFTMS, e.LastMS = 100, 1100; return e }
	for _, tc := range []struct {
		name string
		e    evidence.Exchange
		want float64 // 0: none
		one  bool    // one token in a chunk
	}{
		{"one token in a chunk", second(evidence.Exchange{Chunks: 101, CompletionTokens: 101, TokenCountSource: countUsage}), 100, true},
		{"the last token has no text", second(evidence.Exchange{Chunks: 255, CompletionTokens: 256, TokenCountSource: countUsage}), 255, true},
		{"three, counted at the end", second(evidence.Exchange{Chunks: 50, CompletionTokens: 150, TokenCountSource: countUsage}), 147, false},
		{"three, counted on every chunk", second(evidence.Exchange{Chunks: 50, CompletionTokens: 150, FirstTokens: 3, LastTokens: 150, TokenCountSource: countContinuous}), 147, false},
		{"no count", second(evidence.Exchange{Chunks: 101, TokenCountSource: countChunks}), 100, false},
		{"too short", second(evidence.Exchange{Chunks: 7, CompletionTokens: 7, TokenCountSource: countUsage}), 0, true},
		{"one chunk", second(evidence.Exchange{Chunks: 1, CompletionTokens: 256, TokenCountSource: countUsage}), 0, false},
		{"all in one read", evidence.Exchange{Chunks: 256, CompletionTokens: 256, TTFTMS: 5, LastMS: 5, TokenCountSource: countUsage}, 0, true},
		{"nothing", evidence.Exchange{}, 0, true},
	} {
		got, ok := decodeRate(&tc.e)
		if math.Abs(got-tc.want) > 0.01 || ok != (tc.want > 0) {
			t.Errorf("%s: %v %v, want %v", tc.name, got, ok, tc.want)
		}
		if one := oneTokenPerChunk(&tc.e); one != tc.one {
			t.Errorf("%s: one token in a chunk: %v", tc.name, one)
		}
	}
}

func TestPlan(t *testing.T) {
	run := runID()
	if other := runID(); other == run || len(run) != 8 {
		t.Errorf("runs called %q and %q", run, other)
	}
	starts := map[string]bool{}
	for i, p := range append(prompts[:], warmUpPrompt) {
		full := withNonce(run, i, p)
		if full[:10] != "["+run+"-" {
			t.Errorf("the nonce is not in front: %q", full)
		}
		start := p[:12]
		if starts[start] {
			t.Errorf("two prompts begin with %q", start)
		}
		starts[start] = true
	}
}

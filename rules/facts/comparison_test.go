package facts

import (
	"math"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestComparison(t *testing.T) {
	for _, tc := range []struct {
		name            string
		mean, low, high float64
		n               int
		base, tolerance float64
		want            string
	}{
		{"the incident", 27.0, 26.25, 27.75, 3, 82.5, 10, "slow"},
		{"as before", 82.5, 81.3, 83.7, 3, 82.5, 10, "ok"},
		{"a little slower", 78.5, 77.3, 79.7, 3, 82.5, 10, "ok"},
		{"faster than believable", 100, 97.5, 102.5, 3, 82.5, 10, "fast"},
		{"on the edge", 74.3, 70.5, 78.1, 3, 82.5, 10, "inconclusive"},
		{"scattered", 80, 5.5, 154.5, 3, 82.5, 10, "inconclusive"},
		{"a wider tolerance", 70.5, 69.3, 71.7, 3, 82.5, 20, "ok"},
		{"one stream", 27, 27, 27, 1, 82.5, 10, "inconclusive"},
	} {
		s := &evidence.Snapshot{Asked: evidence.Asked{BaselineTokS: &tc.base, TolerancePct: tc.tolerance},
			Bench: &evidence.Bench{SingleStream: evidence.SingleStream{DecodeTokS: evidence.Estimate{Mean: tc.mean, CILow: tc.low, CIHigh: tc.high, N: tc.n}}}}
		b := comparisonOf(s)
		if b == nil || b.Verdict != tc.want || math.Abs(b.Ratio-tc.mean/tc.base) > 1e-9 {
			t.Errorf("%s: %+v, want %s", tc.name, b, tc.want)
		}
	}
	zero := 0.0
	for name, s := range map[string]*evidence.Snapshot{
		"no benchmark": {Asked: evidence.Asked{BaselineTokS: &zero}},
		"no baseline":  {Bench: &evidence.Bench{}},
		"base of zero": {Asked: evidence.Asked{BaselineTokS: &zero}, Bench: &evidence.Bench{}},
	} {
		if b := comparisonOf(s); b != nil {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

package facts

import "github.com/whyhang/whyhang/probes/evidence"

// comparisonOf compares the benchmark with the baseline that was asked for; nil
// without either. The decode rate's confidence interval decides, not its mean:
// three prompts are few.
func comparisonOf(s *evidence.Snapshot) *evidence.Baseline {
	if s.Bench == nil || s.Asked.BaselineTokS == nil || *s.Asked.BaselineTokS <= 0 {
		return nil
	}
	d := s.Bench.SingleStream.DecodeTokS
	if d.N == 0 {
		return nil
	}
	base, tolerance := *s.Asked.BaselineTokS, s.Asked.TolerancePct/100
	b := &evidence.Baseline{DecodeTokS: base, TolerancePct: s.Asked.TolerancePct, Ratio: d.Mean / base, Verdict: "inconclusive"}
	low, high := (1-tolerance)*base, (1+tolerance)*base
	switch {
	case d.N < 2: // no interval
	case d.CIHigh < low:
		b.Verdict = "slow"
	case d.CILow > high:
		b.Verdict = "fast"
	case d.CILow >= low:
		b.Verdict = "ok"
	}
	return b
}

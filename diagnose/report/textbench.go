package report

import "fmt"

// bench is the short benchmark: one row a prompt, then the mean with its
// interval, then what it is compared with.
func (t *texter) bench(r *Report) {
	b := r.Bench
	if b == nil {
		return
	}
	s := b.SingleStream
	t.title("Short benchmark: one stream")
	if !b.Complete {
		t.wrap("  ", t.warning("not complete: ")+b.Stopped)
	}
	for i := range s.OutputLens {
		if i >= len(s.DecodeRates) || i >= len(s.TTFTs) || i >= len(s.Latencies) {
			break
		}
		l := fmt.Sprintf("  prompt %d   %4d tokens   first token %6.0f ms   all %6.2f s", i+1, s.OutputLens[i], s.TTFTs[i]*1000, s.Latencies[i])
		if s.DecodeRates[i] > 0 {
			l += fmt.Sprintf("   %6.1f tok/s", s.DecodeRates[i])
		}
		t.line("%s", l)
	}
	if d := s.DecodeTokS; d.N > 0 {
		l := fmt.Sprintf("decode %.1f tok/s", d.Mean)
		if d.N > 1 {
			l += fmt.Sprintf(" (95 %% between %.1f and %.1f, n=%d)", d.CILow, d.CIHigh, d.N)
		}
		l += fmt.Sprintf(", TPOT %.2f ms, TTFT %.0f ms; tokens counted by %s", s.MeanTPOTMS, s.MeanTTFTMS, s.TokenCountSource)
		t.wrap("  ", l)
	}
	if s.ServerTokS != nil {
		t.line("  the server's own clock: %.1f tok/s", *s.ServerTokS)
	}
	if b.Baseline != nil {
		t.line("  baseline %.1f tok/s: ratio %.2f, %s (tolerance %.0f %%)", b.Baseline.DecodeTokS, b.Baseline.Ratio, b.Baseline.Verdict, b.Baseline.TolerancePct)
	}
	for _, w := range b.Warnings {
		t.wrap("  ", w)
	}
}

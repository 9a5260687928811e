package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// loadingBySoMuch is a judgement of a load of which all is known.
func loadingBySoMuch() *rules.Judgement {
	done, total, percent, rate, low, high := 364.0*1024*1024, 1024.0*1024*1024, 36.0, 26.7*1024*1024, 16.0, 55.0
	return &rules.Judgement{Verdict: rule.Loading, Cause: rule.WeightsRead, Case: &rule.Case{Facts: &facts.Facts{}},
		Carried: &rule.Finding{Phase: &facts.Phase{Name: evidence.PhaseWeights, Done: done, Total: total, Unit: "bytes", Percent: &percent,
			Rate: rate, ETALow: &low, ETAHigh: &high}}}
}

func TestStatusLineDropsTheBarBeforeTheNumbers(t *testing.T) {
	for width, want := range map[int]string{
		20:  "loading: weights 36 %",
		34:  "loading: weights 36 %, 26.7 MiB/s",
		54:  "loading: weights 36 %, 26.7 MiB/s, 16 to 55 s left",
		74:  "loading: weights [####........] 36 %, 26.7 MiB/s, 16 to 55 s left",
		194: "loading: weights [####........] 36 %, 26.7 MiB/s, 16 to 55 s left, 364 MiB of 1.0 GiB",
	} {
		got := StatusLine(loadingBySoMuch(), width)
		if utf8.RuneCountInString(got) > width {
			t.Errorf("%d wide: %q is too long", width, got)
		}
		if width > 20 && got != want || !strings.HasPrefix(got, "loading: weights") {
			t.Errorf("%d wide: %q, want %q", width, got, want)
		}
	}
}

package rules

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/rules/rule"
)

// warn turns what does not carry the verdict into warnings: findings that only
// warn, and findings for another verdict that precedence put below.
func (j *Judgement) warn() {
	for i := range j.Findings {
		f := &j.Findings[i]
		switch {
		case f.Warning != nil:
			j.Warnings = append(j.Warnings, *f.Warning)
		case f == j.Carried || f.Verdict == j.Verdict:
		case f.Strength >= rule.Likely:
			j.Warnings = append(j.Warnings, rule.Warning{Code: string(f.Rule),
				Says: fmt.Sprintf("This also fits %s (%s): %s", f.Verdict, f.Strength, f.Says)})
		}
	}
}

// distort turns ready into a warning exit code, where the operator asked for
// it: --strict for numbers that would mislead, --baseline for ones too low.
func distort(c *rule.Case, j *Judgement) {
	if j.Verdict != rule.Ready {
		return
	}
	if b := c.Comparison; b != nil && b.Verdict == "slow" {
		j.Cause = rule.BelowBaseline
		j.Sentence += fmt.Sprintf(" It is slower than its baseline: %.1f of %.1f tok/s (ratio %.2f).", c.Bench.SingleStream.DecodeTokS.Mean, b.DecodeTokS, b.Ratio)
		j.Next = append(j.Next, rule.Step{Do: "Look for what distorts it (flags, other traffic, a GPU that is held down), then measure again",
			Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --strict --no-bench", c.Target.PID)})
		for _, w := range j.Warnings {
			if w.Code == "distorting-flag" {
				j.Sentence += fmt.Sprintf(" %s is on: %s.", w.Detail, w.Says)
				break
			}
		}
		return
	}
	if !c.Asked.Strict {
		return
	}
	for _, w := range j.Warnings {
		if w.Misleads {
			j.Cause = rule.Distorted
			j.Sentence += fmt.Sprintf(" Its numbers would mislead: %s.", strings.TrimSuffix(cmp.Or(w.Detail, w.Says), "."))
			return
		}
	}
}

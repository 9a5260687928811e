package rules

import (
	"fmt"
	"slices"

	"github.com/whyhang/whyhang/rules/rule"
)

// ruleOut says for every other verdict why it was not given: by the rules that
// speak for it and did not fire, or by the step of precedence above it.
func ruleOut(c *rule.Case, j *Judgement) {
	for _, r := range All() {
		if r.Verdict == "" || r.Verdict == j.Verdict {
			continue
		}
		if i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.Rule == r.ID }); i >= 0 {
			f := j.Findings[i]
			j.RuledOut = append(j.RuledOut, RuledOut{f.Verdict, r.ID, outranked(j, f), f.Cites})
			continue
		}
		if r.Against == nil || slices.ContainsFunc(j.NotEvaluated, func(n NotEvaluated) bool { return n.Rule == r.ID }) {
			continue
		}
		if b := r.Against(c); b != nil {
			j.RuledOut = append(j.RuledOut, RuledOut{r.Verdict, r.ID, b.Says, b.Cites})
		}
	}
}

func outranked(j *Judgement, f rule.Finding) string {
	if j.Carried == nil {
		return fmt.Sprintf("%s fits and is only %s", f.Rule, f.Strength)
	}
	return fmt.Sprintf("%s (%s) ranks below %s (%s)", f.Rule, f.Strength, j.Carried.Rule, j.Carried.Strength)
}

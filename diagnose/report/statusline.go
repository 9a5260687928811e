package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// StatusLine is how a server stands in one line of at most width characters,
// for whoever waits for it. Of a loading one it holds the phase, how far it is,
// the rate and the time left; then whatever else there is room for.
func StatusLine(j *rules.Judgement, width int) string {
	if j.Verdict != rule.Loading || j.Carried == nil || j.Carried.Phase == nil {
		return OneLine(Clean(string(j.Verdict)+" ("+string(j.Cause)+"): "+j.Sentence), width)
	}
	parts := statusParts(phase(j.Carried.Phase))
	if m := facts.Furthest(&j.Case.Moves); m != nil {
		parts = append(parts, facts.MoveSays(m))
	}
	line := joined("loading: "+parts[0], parts[1:], width)
	// The bar says what the percentage says: it comes after the numbers that
	// nothing else says, and goes where they would not fit beside it.
	if p := phase(j.Carried.Phase); p.Percent != nil {
		name := string(p.Name)
		drawn := joined("loading: "+name+" "+bar(*p.Percent, 12)+strings.TrimPrefix(parts[0], name), parts[1:], width)
		if utf8.RuneCountInString(drawn) <= width && strings.Count(drawn, ", ") >= min(2, strings.Count(line, ", ")) {
			line = drawn
		}
	}
	return OneLine(Clean(line), width)
}

// joined adds to the head of a line what there is room for.
func joined(line string, parts []string, width int) string {
	for _, p := range parts {
		if next := line + ", " + p; utf8.RuneCountInString(next) <= width {
			line = next
		}
	}
	return line
}

// statusParts are the parts of the line, the most telling first.
func statusParts(p *Phase) []string {
	parts := []string{string(p.Name)}
	if p.Percent != nil {
		parts[0] += fmt.Sprintf(" %.0f %%", *p.Percent)
	}
	bytes := p.Unit == "bytes"
	if bytes && p.RatePerS != nil && *p.RatePerS > 0 {
		parts = append(parts, facts.Bytes(*p.RatePerS)+"/s")
	}
	if p.ETALowS != nil && p.ETAHighS != nil {
		parts = append(parts, span(*p.ETALowS, *p.ETAHighS)+" left")
	}
	if bytes && p.Done != nil && p.Total != nil {
		parts = append(parts, fmt.Sprintf("%s of %s", facts.Bytes(*p.Done), facts.Bytes(*p.Total)))
	}
	if p.ElapsedS != nil {
		parts = append(parts, "in it for "+seconds(*p.ElapsedS))
	}
	if p.SilenceS > 0 {
		parts = append(parts, "may be silent for "+seconds(p.SilenceS))
	}
	return parts
}

// span is a range of times, its unit said once: "13 to 21 s".
func span(low, high float64) string {
	from, to := seconds(low), seconds(high)
	if number, unit, ok := strings.Cut(from, " "); ok && strings.HasSuffix(to, " "+unit) {
		from = number
	}
	return from + " to " + to
}

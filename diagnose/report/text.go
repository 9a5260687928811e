package report

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// TextOptions are how the text report is written.
type TextOptions struct {
	Palette Palette
	// Width is the width of a line in characters; 0 is 100.
	Width int
}

// Text writes the report for a terminal: on the first screen the verdict, one
// sentence, the phase, the strongest facts and what to do; then the evidence.
func Text(w io.Writer, r *Report, o TextOptions) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	t := &texter{Palette: o.Palette, width: max(40, o.Width)}
	t.first(r)
	t.evidence(r)
	_, err := io.WriteString(w, t.b.String())
	return err
}

// texter writes paragraphs of at most width characters.
type texter struct {
	Palette
	b     strings.Builder
	width int
}

func (t *texter) line(format string, args ...any) {
	t.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	t.b.WriteByte('\n')
}

// wrap writes text with a first prefix and, for further lines, the same indent.
func (t *texter) wrap(prefix, text string) {
	indent := strings.Repeat(" ", len([]rune(prefix)))
	for i, l := range wrapped(text, t.width-len(indent)) {
		if i > 0 {
			prefix = indent
		}
		t.line("%s%s", prefix, l)
	}
}

// wrapped breaks text at spaces. A word longer than a line stands alone.
func wrapped(text string, width int) []string {
	var lines []string
	var cur []rune
	for _, word := range strings.Fields(text) {
		w := []rune(word)
		if len(cur) > 0 && len(cur)+1+len(w) > width {
			lines = append(lines, string(cur))
			cur = nil
		}
		if len(cur) > 0 {
			cur = append(cur, ' ')
		}
		cur = append(cur, w...)
	}
	if len(cur) > 0 || len(lines) == 0 {
		lines = append(lines, string(cur))
	}
	return lines
}

// first is the first screen.
func (t *texter) first(r *Report) {
	head := fmt.Sprintf("%s  %s", t.verdict(r.Verdict, strings.ToUpper(string(r.Verdict))), r.Cause)
	if r.Verdict != rule.Unknown {
		head += t.faint("  " + r.Strength.String())
	}
	t.line("%s", head)
	t.wrap("  ", r.Sentence)
	if r.Phase != nil {
		t.wrap("  ", phaseLine(r.Phase))
	}
	if facts := strongest(r, 3); len(facts) > 0 {
		t.line("")
		t.line("%s", t.head("Facts"))
		for _, c := range facts {
			t.wrap("  - ", factLine(c))
		}
	}
	for _, w := range r.Warnings {
		t.line("")
		label := t.warning("Warning") + " "
		text := w.Says
		if w.Detail != "" {
			text = w.Detail + ": " + text
		}
		if w.Effect != "" {
			text += " — " + w.Effect
		}
		lines := wrapped(text, t.width-8)
		for i, l := range lines {
			if i > 0 {
				label = "        "
			}
			t.line("%s%s", label, l)
		}
	}
	if len(r.Next) > 0 {
		t.line("")
		t.line("%s", t.head("Next"))
		for _, s := range r.Next {
			t.next(s)
		}
	}
	t.line("")
	for _, l := range wrapped(targetLine(r), t.width) {
		t.line("%s", t.faint(l))
	}
	t.line("%s", t.faint(fmt.Sprintf("looked for %s at %s, exit code %d", seconds(r.TookMS/1000), r.Taken.Format("2006-01-02 15:04:05 -07:00"), r.ExitCode)))
}

func (t *texter) next(s rule.Step) {
	do := s.Do
	if s.Risk != rule.RiskNone {
		do += " (" + string(s.Risk) + " risk)"
	}
	t.wrap("  - ", do)
	if s.Command != "" {
		t.line("      $ %s", s.Command)
	}
}

// strongest are the first cites of the finding that carried the verdict.
func strongest(r *Report, n int) []rule.Cite {
	if len(r.Findings) == 0 || r.Findings[0].Verdict != r.Verdict {
		return nil
	}
	c := r.Findings[0].Cites
	return c[:min(n, len(c))]
}

// factLine is what a citation says and the value it says it of.
func factLine(c rule.Cite) string {
	if c.Value == "" {
		return c.Says
	}
	return fmt.Sprintf("%s: %s", c.Says, OneLine(readable(c.Value), 160))
}

// fraction is a number with digits that say nothing to a reader.
var fraction = regexp.MustCompile(`^-?\d+\.\d{4,}$`)

// readable is a cited value for people. The JSON report has all its digits.
func readable(value string) string {
	if !fraction.MatchString(value) {
		return value
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return value
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// phaseLine draws how far a phase is.
func phaseLine(p *Phase) string {
	parts := []string{"phase " + string(p.Name)}
	if p.Percent != nil {
		parts[0] += fmt.Sprintf(" %s %.0f %%", bar(*p.Percent, 24), *p.Percent)
	}
	if p.Done != nil && p.Total != nil && p.Unit == "bytes" {
		parts = append(parts, fmt.Sprintf("%s of %s", facts.Bytes(*p.Done), facts.Bytes(*p.Total)))
	}
	if p.RatePerS != nil && *p.RatePerS > 0 && p.Unit == "bytes" {
		parts = append(parts, facts.Bytes(*p.RatePerS)+"/s")
	}
	if p.ETALowS != nil && p.ETAHighS != nil {
		parts = append(parts, fmt.Sprintf("%s to %s left", seconds(*p.ETALowS), seconds(*p.ETAHighS)))
	}
	if p.ElapsedS != nil {
		parts = append(parts, "in it for "+seconds(*p.ElapsedS))
	}
	if p.SilenceS > 0 {
		parts = append(parts, "may be silent for "+seconds(p.SilenceS))
	}
	return strings.Join(parts, ", ")
}

// bar is a progress bar that reads without colour and in ASCII.
func bar(percent float64, width int) string {
	full := int(percent / 100 * float64(width))
	full = max(0, min(width, full))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// seconds writes a duration as people say it.
func seconds(s float64) string { return facts.Lasting(s) }

// age is a duration of which nobody needs the seconds.
func age(s float64) string {
	if s >= 120 && s < 600 {
		return fmt.Sprintf("%.0f min", s/60)
	}
	return seconds(s)
}

// targetLine names the server on one line.
func targetLine(r *Report) string {
	t := r.Target
	parts := []string{fmt.Sprintf("PID %d", t.PID)}
	if t.AskedTID != 0 {
		parts[0] += fmt.Sprintf(" (%d is one of its threads)", t.AskedTID)
	}
	if t.Engine != "" {
		parts = append(parts, strings.TrimSpace(t.Engine+" "+t.EngineVersion))
	}
	if t.Model != "" {
		parts = append(parts, OneLine(t.Model, 60))
	}
	if t.Processes > 0 {
		parts = append(parts, count(t.Processes, "process", "processes")+", "+count(t.Threads, "thread", "threads"))
	}
	if t.UptimeS != nil {
		parts = append(parts, "up "+age(*t.UptimeS))
	}
	if t.URL != "" {
		parts = append(parts, t.URL)
	}
	return strings.Join(parts, " · ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
)

// evidence is everything below the first screen.
func (t *texter) evidence(r *Report) {
	t.findings(r)
	t.waited(r)
	t.moves(r)
	t.threads(r)
	t.logs(r)
	t.timeline(r)
	t.gpus(r)
	t.check(r)
	t.bench(r)
	t.ruledOut(r)
	t.notKnown(r)
	t.probes(r)
}

func (t *texter) title(s string) {
	t.line("")
	t.line("%s", t.head(s))
}

// findings are the culprits and all facts of every finding.
func (t *texter) findings(r *Report) {
	for i, f := range r.Findings {
		if i > 0 && f.Verdict != r.Verdict {
			continue // it stands among the warnings
		}
		t.title(fmt.Sprintf("Evidence of %s (%s)", f.Rule, f.Strength))
		for k, c := range f.Culprits {
			if k == 12 {
				t.line("  … and %d more in the circle", len(f.Culprits)-k)
				break
			}
			who := fmt.Sprintf("process %d", c.PID)
			if c.TID != 0 {
				who = fmt.Sprintf("thread %d", c.TID)
			}
			if c.Name != "" {
				who += fmt.Sprintf(" %q", c.Name)
			}
			if c.TID != 0 && c.TID != c.PID {
				who += fmt.Sprintf(" of process %d", c.PID)
			}
			t.wrap("  - ", who+" "+c.Where)
		}
		if f.Victims > 0 {
			t.line("  - %s only wait for these", count(f.Victims, "more thread", "more threads"))
		}
		for k, c := range f.Cites {
			if k == 16 {
				t.line("  … and %d more in the JSON report", len(f.Cites)-k)
				break
			}
			t.wrap("    ", factLine(c))
			t.line("%s", t.faint("      "+c.At))
		}
	}
	for _, s := range r.FlipsIf {
		t.wrap("  would change the verdict: ", s)
	}
}

func (t *texter) threads(r *Report) {
	if len(r.Threads) == 0 {
		return
	}
	shown := 0
	for _, g := range r.Threads {
		shown += g.Count
	}
	t.title(fmt.Sprintf("Threads (%d)", shown))
	for i, g := range r.Threads {
		if i == 10 {
			rest := 0
			for _, g := range r.Threads[i:] {
				rest += g.Count
			}
			t.line("  %5d x %d other pictures", rest, len(r.Threads)-i)
			break
		}
		l := fmt.Sprintf("  %5d x %s", g.Count, g.Does)
		if g.Wchan != "" {
			l += " (" + g.Wchan + ")"
		}
		if g.Still != nil && g.State != "R" {
			switch {
			case *g.Still == g.Count:
				l += ", did not run"
			case *g.Still > 0:
				l += fmt.Sprintf(", %d did not run", *g.Still)
			}
		}
		if len(g.Names) > 0 {
			l += "  " + t.faint(OneLine(strings.Join(g.Names, ", "), 60))
		}
		t.line("%s", l)
	}
}

func unread(u evidence.Unread) string {
	s := u.What + ": " + u.Why
	if u.Hint != "" {
		s += " (" + u.Hint + ")"
	}
	return s
}

func (t *texter) gpus(r *Report) {
	if len(r.GPUs) == 0 {
		return
	}
	t.title(fmt.Sprintf("GPUs (%d)", len(r.GPUs)))
	for _, g := range r.GPUs {
		t.wrap("  ", gpuLine(g))
	}
}

// gpuLine is one GPU; what the driver did not say is a question mark.
func gpuLine(g GPU) string {
	if g.Lost {
		return fmt.Sprintf("%d  %s  LOST", g.Index, g.Name)
	}
	return fmt.Sprintf("%d  %s  %s of %s, %s %% busy, memory %s %% busy, %s of %s W", g.Index, g.Name,
		bytesOr(g.MemoryUsedBytes), bytesOr(g.MemoryTotalBytes), intOr(g.UtilPercent), intOr(g.MemoryUtilPercent), wattsOr(g.PowerW), wattsOr(g.PowerLimitW))
}

func bytesOr(v *uint64) string {
	if v == nil {
		return "?"
	}
	return facts.Bytes(float64(*v))
}

func intOr(v *int) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprint(*v)
}

func wattsOr(v *float64) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf("%.0f", *v)
}

func (t *texter) check(r *Report) {
	if r.Check == nil {
		return
	}
	t.title("Check: what is 2+2?")
	t.wrap("  ", fmt.Sprintf("%s: %s", r.Check.Verdict, r.Check.Says))
	if r.Check.KeyFrom != "" {
		t.wrap("  ", "asked with the API key of "+r.Check.KeyFrom+", which is kept nowhere")
	}
	t.counters(r)
	for _, e := range r.Check.Exchanges {
		answer := e.Content
		if answer == "" {
			answer = e.Reasoning
		}
		if answer == "" {
			answer = e.Error
		}
		t.wrap("  - ", fmt.Sprintf("%q → %q", OneLine(e.Prompt, 60), OneLine(answer, 120)))
		t.line("    %s", t.faint(exchangeLine(e)))
	}
}

// counters are the engine's own, at the first and the last reading.
func (t *texter) counters(r *Report) {
	for i := range r.Counters {
		if l := &r.Counters[i]; i == 0 || i == len(r.Counters)-1 {
			t.wrap("  ", fmt.Sprintf("%s at %.1f s: %s", l.Endpoint, l.SinceMS/1000, facts.CounterSays(l)))
		}
	}
}

func exchangeLine(e evidence.Exchange) string {
	parts := []string{fmt.Sprintf("HTTP %d", e.HTTPStatus)}
	if e.ErrorType != "" {
		parts = append(parts, e.ErrorType)
	}
	if e.TTFTMS > 0 {
		parts = append(parts, fmt.Sprintf("first token %.0f ms", e.TTFTMS))
	}
	if e.E2ELMS > 0 {
		parts = append(parts, fmt.Sprintf("all %.0f ms", e.E2ELMS))
	}
	if e.CompletionTokens > 0 {
		parts = append(parts, count(e.CompletionTokens, "token", "tokens"))
	}
	if e.FinishReason != "" {
		parts = append(parts, "finish "+e.FinishReason)
	}
	return strings.Join(parts, ", ")
}

func (t *texter) ruledOut(r *Report) {
	if len(r.RuledOut) == 0 {
		return
	}
	t.title("Ruled out")
	for _, o := range r.RuledOut {
		t.wrap(fmt.Sprintf("  - %s (%s): ", o.Verdict, o.Rule), o.Because)
	}
}

func (t *texter) notKnown(r *Report) {
	if len(r.NotEvaluated) == 0 {
		return
	}
	t.title("Not known")
	for _, group := range missing(r) {
		t.wrap("  - ", group.what)
		if group.hint != "" {
			t.line("      $ %s", group.hint)
		}
	}
}

// lacking is one thing that was missing, with the rules that lacked it.
type lacking struct{ what, hint string }

// missing joins rules that lack the same evidence.
func missing(r *Report) []lacking {
	var order []string
	rules, hints := map[string][]string{}, map[string]string{}
	for _, n := range r.NotEvaluated {
		if _, seen := rules[n.Missing]; !seen {
			order = append(order, n.Missing)
		}
		if !slices.Contains(rules[n.Missing], string(n.Rule)) {
			rules[n.Missing] = append(rules[n.Missing], string(n.Rule))
		}
		if n.Hint != "" {
			hints[n.Missing] = n.Hint
		}
	}
	var out []lacking
	for _, m := range order {
		out = append(out, lacking{fmt.Sprintf("%s: %s", strings.Join(rules[m], ", "), m), hints[m]})
	}
	return out
}

func (t *texter) probes(r *Report) {
	if len(r.Probes) == 0 {
		return
	}
	t.title("Probes")
	for _, p := range r.Probes {
		l := fmt.Sprintf("  %-10s %-11s %7.1f ms  ", p.Name, p.Status, p.TookMS)
		detail := p.Detail
		if p.Hint != "" {
			detail += " → " + p.Hint
		}
		if detail == "" {
			t.line("%s", l)
			continue
		}
		t.wrap(l, detail)
	}
}

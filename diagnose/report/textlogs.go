package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// How many lines of a log are told on a screen.
const (
	maxDecisive = 8
	maxServed   = 6
)

func (t *texter) logs(r *Report) {
	idle := r.Verdict == rule.Ready
	for i := range r.Logs {
		l := &r.Logs[i]
		t.title("Log")
		t.wrap("  ", fmt.Sprintf("%s (%s): %s, %s, silent for %s%s", l.Path, l.Source, count(int(l.Lines), "line", "lines"), facts.Bytes(float64(l.SizeBytes)), seconds(l.SilentS), legal(l, idle)))
		if l.ReadyLine > 0 {
			t.line("  ready line: $ sed -n %dp %s", l.ReadyLine, rule.Quoted(l.Path))
		}
		for _, u := range l.Unread {
			t.wrap("  not read: ", unread(u))
		}
		t.decisive(l)
		t.served(l)
		for _, e := range l.Tail[max(0, len(l.Tail)-4):] {
			t.line("  %6d  %s", e.Number, OneLine(e.Text, t.width-10))
		}
	}
}

// legal says whether the log may be silent for so long.
func legal(l *LogRead, idle bool) string {
	switch {
	case l.SilentS < 5:
		return "" // nobody wonders
	case idle:
		return "; an idle server writes nothing"
	case l.SilenceS == 0:
		return ""
	case l.SilentS > l.SilenceS:
		return fmt.Sprintf(", longer than this phase explains (%s)", seconds(l.SilenceS))
	}
	return fmt.Sprintf(", as this phase may be for %s", seconds(l.SilenceS))
}

// decisive are the lines that tell what happened: what failed first, what
// followed from it set in below, and what came again and again.
func (t *texter) decisive(l *LogRead) {
	lines := l.Decisive
	if len(lines) > maxDecisive {
		lines = chosen(lines)
	}
	for _, d := range lines {
		if d.Line == l.ReadyLine {
			continue // has been told
		}
		label := "  "
		if follows(d.Kind) {
			label = "    "
		}
		label = fmt.Sprintf("  %6d%s%s: ", d.Line, label, decisiveWord(d))
		t.line("%s%s", label, OneLine(d.Text, max(20, t.width-len(label))))
	}
	if n := len(l.Decisive) - len(lines); n > 0 {
		t.line("          %s: see the JSON report", count(n, "more such line", "more such lines"))
	}
}

// chosen are the lines that tell most, in their order: the first that failed,
// then what is told of being stuck and of having ended, then the rest.
func chosen(all []DecisiveLine) []DecisiveLine {
	keep := make([]bool, len(all))
	left := maxDecisive
	for _, kinds := range [][]evidence.Kind{{evidence.KindFatal}, {evidence.KindStall, evidence.KindReady, evidence.KindShutdown}, {evidence.KindConsequence}, {evidence.KindRetry, evidence.KindHeartbeat}} {
		room := max(1, left-2)
		for i, d := range all {
			if left > 0 && room > 0 && !keep[i] && slices.Contains(kinds, d.Kind) && d.HarmlessBy == 0 {
				keep[i] = true
				left, room = left-1, room-1
			}
		}
	}
	var out []DecisiveLine
	for i, d := range all {
		if keep[i] {
			out = append(out, d)
		}
	}
	return out
}

// decisiveWord says what a line is.
func decisiveWord(d DecisiveLine) string {
	word := map[evidence.Kind]string{
		evidence.KindFatal: "failed", evidence.KindConsequence: "follows", evidence.KindStall: "stuck", evidence.KindReady: "ready",
		evidence.KindShutdown: "ends", evidence.KindHeartbeat: "heartbeat", evidence.KindRetry: "tries again",
	}[d.Kind]
	if !d.Known {
		word = "error"
	}
	if d.HarmlessBy > 0 {
		word = fmt.Sprintf("%s, got over it in line %d", word, d.HarmlessBy)
	}
	if d.Rank != "" {
		word += " " + d.Rank
	}
	if d.Count > 1 {
		word += fmt.Sprintf(" x%d until line %d", d.Count, d.LastLine)
	}
	return word
}

// servedWords are the numbers of a server's statistics.
var servedWords = map[string]string{
	"tokens_per_s": "tokens/s", "prompt_tokens_per_s": "prompt tokens/s", "running": "running requests", "waiting": "waiting requests", "kv_percent": "KV cache used, %",
}

// served is one line for each number.
func (t *texter) served(l *LogRead) {
	for _, s := range l.Serving[:min(maxServed, len(l.Serving))] {
		last := s.Points[len(s.Points)-1]
		text := servedWords[s.Name]
		if s.Rank != "" {
			text += " of " + s.Rank
		}
		text += fmt.Sprintf(": last %s in line %d", number(last.Value), last.Line)
		if last.At != nil {
			text += " at " + last.At.Format("15:04:05")
		}
		switch {
		case s.Max == 0:
			text += "; never above 0"
		case len(s.Points) > 1:
			text += fmt.Sprintf("; median %s, from %s to %s where not 0", number(s.Median), number(s.Min), number(s.Max))
		}
		t.wrap("  serving: ", text)
	}
}

// number is without digits that mean nothing.
func number(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}

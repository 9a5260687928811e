package report

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
)

// logs are the logs that were read, with what in them matters.
func logs(j *rules.Judgement) []LogRead {
	t := &j.Case.Phases
	decisive, served := t.Decisive(j.Case.Logs), t.Served()
	var out []LogRead
	for i, l := range j.Case.Logs {
		r := LogRead{Path: l.Path, Source: l.Source, Lines: l.Lines, SizeBytes: l.SizeBytes, SilentS: round(l.SilentS, 1), Tail: l.Tail, Errors: l.Errors, Unread: l.Unread}
		if ev := t.Ready; ev != nil && len(ev.At) > 1 && ev.At[1] == i {
			r.ReadyLine = ev.Hit.Line
		}
		if known := j.Case.Engine.Known; known != nil && t.LastLine != nil && len(t.LastLine.At) > 1 && t.LastLine.At[1] == i {
			r.SilenceS = known.Silence[t.Current].Seconds()
		}
		for _, d := range decisive {
			if d.Log == i {
				r.Decisive = append(r.Decisive, decisiveLine(d))
			}
		}
		for _, s := range served {
			if one, ok := servedIn(i, s); ok {
				r.Serving = append(r.Serving, one)
			}
		}
		out = append(out, r)
	}
	return out
}

func decisiveLine(d facts.Decisive) DecisiveLine {
	l := DecisiveLine{Line: d.Line, Count: d.Count, Kind: d.Kind, Known: d.Known, Rank: d.Rank, Text: d.Text, HarmlessBy: d.Harmless}
	if d.Count > 1 {
		l.LastLine = d.LastLine
	}
	return l
}

// servedIn is a series as far as it comes from one log.
func servedIn(log int, s facts.Served) (Served, bool) {
	out := Served{Name: s.Name, Rank: s.Rank, Min: round(s.Min, 2), Median: round(s.Median, 2), Max: round(s.Max, 2)}
	for _, p := range s.Points {
		if p.Log == log {
			out.Points = append(out.Points, ServedPoint{Line: p.Line, At: p.At, Value: p.Value})
		}
	}
	return out, len(out.Points) > 0
}

// follows are the kinds that are told below what they follow from.
func follows(k evidence.Kind) bool { return k == evidence.KindConsequence }

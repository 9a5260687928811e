package report

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
)

// New is the report of a judgement, with every string from the target
// neutralised.
func New(j *rules.Judgement) *Report {
	c := j.Case
	s := c.Snapshot
	r := &Report{
		Schema: Schema, Tool: s.Tool, Taken: s.Taken, TookMS: s.TookMS, WindowMS: c.Moves.WindowMS,
		Verdict: j.Verdict, Cause: j.Cause, Strength: j.Strength, ExitCode: j.ExitCode, Sentence: j.Sentence,
		Target: target(j), Timeline: timeline(c.Phases.Spans), GPUs: gpus(s),
		FlipsIf: j.FlipsIf, Warnings: j.Warnings, Next: j.Next,
		Movement: movement(c), Threads: threads(s), Logs: logs(j), Counters: s.Counters, Check: check(s.Check), Bench: s.Bench, Waited: waited(s), Probes: s.Probes,
	}
	if s.Bench != nil {
		b := *s.Bench
		b.Baseline = c.Comparison
		r.Bench = &b
	}
	if j.Carried != nil {
		r.Phase = phase(j.Carried.Phase)
	}
	for _, f := range j.Findings {
		if f.Warning == nil {
			r.Findings = append(r.Findings, Finding{f.Rule, f.Verdict, f.Cause, f.Strength, f.Says, f.Culprits, f.Victims, f.Cites})
		}
	}
	for _, o := range j.RuledOut {
		r.RuledOut = append(r.RuledOut, RuledOut{o.Verdict, o.Rule, o.Because, o.Cites})
	}
	for _, n := range j.NotEvaluated {
		r.NotEvaluated = append(r.NotEvaluated, NotEvaluated{n.Rule, n.Missing, n.Hint})
	}
	return neutral(r)
}

func target(j *rules.Judgement) Target {
	c := j.Case
	t := Target{PID: c.Target.PID, AskedTID: c.Target.AskedTID, Processes: 0, Threads: c.Tree.Threads, URL: c.Door.URL,
		Model: c.Engine.Model}
	if c.Engine.Known != nil {
		t.Engine = c.Engine.Known.ID
	}
	if v, _ := c.Phases.Value("version"); v != "" {
		t.EngineVersion = v
	}
	for i := range c.Processes {
		if c.Tree.Alive[c.Processes[i].PID] {
			t.Processes++
		}
	}
	if len(c.Processes) > 0 {
		root := &c.Processes[0]
		t.Argv, t.Container = root.Argv, root.Container
		if i, ok := c.Tree.Index[c.Engine.MainPID]; ok && c.Engine.Known != nil {
			t.Argv = c.Processes[i].Argv
		}
		if !root.Started.IsZero() {
			up := round(c.Taken.Sub(root.Started).Seconds(), 1)
			t.UptimeS = &up
		}
	}
	if t.Model == "" && c.WeightsDone.Held {
		t.Model = c.WeightsDone.Path
	}
	t.ModelBytes = uint64(c.WeightsDone.TotalBytes)
	for _, h := range c.Heads {
		if h.Role == "scheduler" || h.Role == "worker" {
			t.RanksExpected, t.RanksSeen = h.Expected, len(h.Living)
		}
	}
	return t
}

func check(c *evidence.Check) *Check {
	if c == nil {
		return nil
	}
	out := &Check{Check: c, HTTPStatus: c.HealthStatus}
	if n := len(c.Exchanges); n > 0 {
		e := c.Exchanges[n-1]
		out.Answer, out.Content, out.ReasoningChars = e.Content, e.Content, utf8.RuneCountInString(e.Reasoning)
		if strings.TrimSpace(e.Content) == "" {
			out.Answer = e.Reasoning
		}
		out.FinishReason, out.CompletionTokens, out.TTFTMS, out.E2ELMS = e.FinishReason, e.CompletionTokens, e.TTFTMS, e.E2ELMS
		out.HTTPStatus, out.ErrorType = e.HTTPStatus, e.ErrorType
	}
	return out
}

func phase(p *facts.Phase) *Phase {
	if p == nil {
		return nil
	}
	out := &Phase{Name: p.Name, Since: p.Since, ElapsedS: rounded(p.Elapsed, 1), Percent: rounded(p.Percent, 1),
		ETAS: rounded(p.ETA, 1), ETALowS: rounded(p.ETALow, 1), ETAHighS: rounded(p.ETAHigh, 1), SilenceS: p.Silence.Seconds()}
	if p.Unit != "" {
		out.Unit, out.Done, out.RatePerS = p.Unit, rounded(&p.Done, 0), rounded(&p.Rate, 0)
		if p.Total > 0 {
			out.Total = rounded(&p.Total, 0)
		}
	}
	return out
}

func timeline(spans []facts.Span) []Span {
	var out []Span
	for _, s := range spans {
		o := Span{Phase: s.Phase, Begin: s.Begin, End: s.End, Rank: s.Rank, Line: s.Line, EndLine: s.EndLine}
		if s.Begin != nil && s.End != nil {
			sec := round(s.End.Sub(*s.Begin).Seconds(), 3)
			o.Seconds = &sec
		}
		out = append(out, o)
	}
	return out
}

func gpus(s *evidence.Snapshot) []GPU {
	if s.GPU == nil {
		return nil
	}
	var out []GPU
	for _, d := range s.GPU.Devices {
		g := GPU{Index: d.Index, UUID: d.UUID, Name: d.Name, BusID: d.BusID, MemoryTotalBytes: d.MemoryTotalBytes, PowerLimitW: d.PowerLimitW, PIDs: []int{}}
		for n := len(s.Frames) - 1; n >= 0; n-- {
			if f := gpuAt(&s.Frames[n], d.Index); f != nil {
				g.MemoryUsedBytes, g.UtilPercent, g.MemoryUtilPercent, g.PowerW, g.Lost = f.MemoryUsedBytes, f.UtilPercent, f.MemoryUtilPercent, f.PowerW, f.Lost
				for _, p := range f.Processes {
					g.PIDs = append(g.PIDs, p.PID)
				}
				break
			}
		}
		out = append(out, g)
	}
	return out
}

func gpuAt(f *evidence.Frame, index int) *evidence.GPUFrame {
	for i := range f.GPUs {
		if f.GPUs[i].Index == index {
			return &f.GPUs[i]
		}
	}
	return nil
}

func threads(s *evidence.Snapshot) []ThreadGroup {
	var out []ThreadGroup
	for _, g := range facts.Groups(s) {
		t := ThreadGroup{Count: g.Count, Does: g.Does, Wchan: g.Wchan, State: g.State, Names: g.Names, PIDs: g.PIDs}
		if g.Still >= 0 {
			t.Still = &g.Still
		}
		if len(t.PIDs) > 16 {
			t.PIDs = t.PIDs[:16]
		}
		out = append(out, t)
	}
	return out
}

func round(v float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(v*p) / p
}

func rounded(v *float64, digits int) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	r := round(*v, digits)
	return &r
}

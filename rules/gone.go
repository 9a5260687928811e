package rules

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// gone is the first step of precedence: a process that is not there has no
// other verdict.
func gone(c *rule.Case, j *Judgement) bool {
	t := c.Target
	j.Verdict, j.Strength = rule.Gone, rule.Proved
	cite := c.Cite("state of the process that was asked for", "target", "state")
	f := &rule.Finding{Rule: "gone", Verdict: rule.Gone, Strength: rule.Proved, Cites: []rule.Cite{cite}}
	switch t.State {
	case evidence.TargetAbsent:
		f.Cause = rule.NoProcess
		f.Says = fmt.Sprintf("There is no process %d.", t.PID)
		f.Next = []rule.Step{{Do: "Find the server", Risk: rule.RiskNone, Command: "pgrep -af 'sglang|vllm|llama|trtllm|text-generation'"}}
	case evidence.TargetZombie:
		f.Cause = rule.Exited
		f.Says = fmt.Sprintf("Process %d has ended%s; it stays as a zombie until its parent, process %d (%s), asks for its exit status.",
			t.PID, how(t.WaitStatus), t.ParentPID, t.ParentName)
		if t.WaitStatus != nil {
			f.Cites = append(f.Cites, c.Cite("its wait status", "target", "wait_status"))
		}
	case evidence.TargetExited:
		f.Cause = rule.Exited
		f.Says = fmt.Sprintf("Process %d ended while whyhang looked%s.", t.PID, how(t.WaitStatus))
	default:
		return false
	}
	if ev := c.Phases.Fatal; ev != nil {
		f.Says += fmt.Sprintf(" The first fatal line of its log: %q (line %d).", ev.Hit.Text, ev.Hit.Line)
		f.Cites = append(f.Cites, c.Cite("in its log", ev.Field("text")...))
	}
	if f.Cause == rule.Exited {
		f.Next = whyItEnded(c)
	}
	j.Findings = []rule.Finding{*f}
	j.carry(f)
	return true
}

// whyItEnded are the places that say why a process is not there any more: its
// log, and the kernel's unless something else is known to have ended it.
func whyItEnded(c *rule.Case) []rule.Step {
	const sigkill = 9
	var steps []rule.Step
	if ev := c.Phases.Fatal; ev != nil {
		steps = append(steps, rule.Step{Do: "Read its log from there", Risk: rule.RiskNone, Command: rule.FromLine(c, ev.At, ev.Hit.Line)})
	} else if len(c.Logs) > 0 {
		steps = append(steps, rule.Step{Do: "Read the end of its log", Risk: rule.RiskNone, Command: "tail -n 60 " + rule.Quoted(c.Logs[0].Path)})
	}
	if s := c.Target.WaitStatus; s == nil || *s&0x7f == sigkill {
		steps = append(steps, rule.Step{Do: "See whether the kernel killed it", Risk: rule.RiskNone,
			Command: fmt.Sprintf("sudo dmesg -T | grep -iE 'oom|killed process %d|segfault|Xid'", c.Target.PID)})
	}
	return steps
}

func how(status *int) string {
	if s := facts.EndedBy(status); s != "" {
		return ", " + s
	}
	return ""
}

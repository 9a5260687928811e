package loading

import (
	"fmt"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// upAlready tells whether the server has said that it is ready, after which
// nothing it does is loading.
func upAlready(c *rule.Case) bool {
	return c.Phases.Ready != nil || c.Phases.Stopping != nil
}

// phase is the phase as reports show it.
func phase(c *rule.Case, name evidence.Phase) *facts.Phase {
	p := &facts.Phase{Name: name}
	if c.Engine.Known != nil {
		p.Silence = c.Engine.Known.Silence[name]
	}
	if span := c.Phases.CurrentSpan; span != nil && span.Phase == c.Phases.Current && span.Begin != nil {
		p.Since = span.Begin
		if elapsed := c.Taken.Sub(*span.Begin).Seconds(); elapsed >= 0 {
			p.Elapsed = &elapsed
		}
	}
	if c.Phases.Percent != nil && c.Phases.Current == name {
		p.Percent = c.Phases.Percent
	}
	return p
}

// weightsPhase adds how far the weights are.
func weightsPhase(c *rule.Case, name evidence.Phase) *facts.Phase {
	p, w := phase(c, name), c.WeightsDone
	if !w.Known {
		return p
	}
	p.Done, p.Total, p.Rate, p.Unit = w.DoneBytes, w.TotalBytes, w.Rate, "bytes"
	if w.TotalBytes > 0 {
		percent := 100 * w.DoneBytes / w.TotalBytes
		p.Percent = &percent
		if w.Rate > 0 {
			p.ETA, p.ETALow, p.ETAHigh = &w.ETA, &w.ETALow, &w.ETAHigh
		}
	}
	return p
}

// ranks says which ranks are still in a phase that others have ended.
func ranks(c *rule.Case, name evidence.Phase) string {
	behind, ahead := c.Phases.Behind(name)
	if len(behind) == 0 || len(ahead) == 0 {
		return ""
	}
	who := strings.Join(behind[:min(4, len(behind))], ", ")
	if len(behind) > 4 {
		who += ", …"
	}
	return fmt.Sprintf(" %d of %d ranks have ended it, not yet %s.", len(ahead), len(ahead)+len(behind), who)
}

// citeLog cites the log line that names the current phase.
func citeLog(c *rule.Case) []rule.Cite {
	ev := c.Phases.LastLine
	if ev == nil {
		return nil
	}
	return []rule.Cite{c.Cite(fmt.Sprintf("line %d of the log, the last that names a phase", ev.Hit.Line), ev.Field("text")...)}
}

// citeMove cites a movement.
func citeMove(c *rule.Case, m *facts.Move) rule.Cite {
	return c.Cite(facts.MoveSays(m), m.At...)
}

// busiest is the process of the tree that used or wanted most processor time
// before anything was asked.
func busiest(c *rule.Case) (pid int, share, demand, user float64) {
	return facts.Busiest(c.Snapshot, &c.Moves)
}

// uses says how much of a processor a process uses, and wants.
func uses(c *rule.Case, pid int, share, demand float64) string {
	s := fmt.Sprintf("%s uses %.0f %% of a processor", who(c, pid), share*100)
	if demand > share+0.2 {
		s += fmt.Sprintf(" and waits for %.0f %% more", (demand-share)*100)
	}
	return s
}

// who names a process with its part in the engine.
func who(c *rule.Case, pid int) string {
	i, ok := c.Tree.Index[pid]
	if !ok {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, c.Engine.RoleOf(&c.Processes[i]))
}

// patience says how long the phase may be silent, for the report.
func patience(p *facts.Phase) string {
	if p.Silence == 0 {
		return ""
	}
	return fmt.Sprintf(" This phase may be silent for %s.", says(p.Silence))
}

func says(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f seconds", d.Seconds())
	}
	return fmt.Sprintf("%.0f minutes", d.Minutes())
}

// again is the step that every loading verdict ends with.
func again(c *rule.Case, p *facts.Phase) []rule.Step {
	wait := "Look again in a minute"
	if p != nil && p.ETAHigh != nil {
		wait = fmt.Sprintf("Look again in about %s", says(time.Duration(*p.ETAHigh*float64(time.Second))))
	}
	return []rule.Step{{Do: wait + "; do not kill it", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d", c.Target.PID)}}
}

package ready

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Answers is a server that answered the check correctly.
var Answers = rule.Rule{
	ID:      "answers",
	Verdict: rule.Ready,
	Title:   "The server answers correctly",
	Doc: `Looks at the answer to "What is 2+2?", asked over the socket that belongs to this
tree, as a stream. A right answer proves that the whole way works: front end,
scheduler, every rank, the GPUs, and the way back. It outranks every sign of
trouble but a dead part; such signs then become warnings.

An answer cut off in readable reasoning passes: models think before they speak,
and 32 tokens are few. A fluent wrong answer is asked again more plainly before
it counts.

The rule needs no GPU and no log. It says "busy" when other requests are under
way: open connections to the server while it works, or a log of batches.

What would make it wrong: a cache or proxy in front that answers for a dead
engine.`,
	Needs:      []evidence.Need{evidence.NeedCheck},
	Suppresses: []rule.ID{"ready-by-its-word", "no-movement", "phase-moves"},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Check == nil || c.Check.Verdict != evidence.CheckPass && c.Check.Verdict != evidence.CheckPassTruncated {
			return nil
		}
		place := c.Door.Place(c.Snapshot, c.Asked.URL)
		if place == facts.PlaceElsewhere {
			return nil // somebody else answered: see rules/undecided.go
		}
		f := rule.Finding{Cause: rule.Idle, Strength: rule.Proved, Cites: []rule.Cite{c.Cite(c.Check.Says, "check", "verdict")}}
		n := len(c.Check.Exchanges)
		says := "It is ready: it answered 2+2 correctly"
		if place == facts.PlaceUnknown {
			// The place was named by the operator and is no socket of this tree.
			says = fmt.Sprintf("It is ready, if %s leads to it: there 2+2 was answered correctly", c.Check.URL)
			f.Strength = rule.Strong
		}
		if n > 0 {
			last := c.Check.Exchanges[n-1]
			if last.E2ELMS < 1000 {
				says += fmt.Sprintf(" in %.0f ms", last.E2ELMS)
			} else {
				says += fmt.Sprintf(" in %.1f s", last.E2ELMS/1000)
			}
			f.Cites = append(f.Cites, c.Cite("what it answered", "check", "exchanges", n-1, answerField(last)))
		}
		f.Says = says + occupation(c, &f) + "."
		f.Cites = append(f.Cites, readyLine(c)...)
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		return &rule.Because{Says: c.Check.Says, Cites: []rule.Cite{c.Cite("result of the check", "check", "verdict")}}
	},
}

func answerField(e evidence.Exchange) string {
	if strings.TrimSpace(e.Content) == "" && e.Reasoning != "" {
		return "reasoning"
	}
	return "content"
}

// readyLine cites the log's own ready line.
func readyLine(c *rule.Case) []rule.Cite {
	ev := c.Phases.Ready
	if ev == nil {
		return nil
	}
	return []rule.Cite{c.Cite(fmt.Sprintf("line %d of the log", ev.Hit.Line), ev.Field("text")...)}
}

// occupation says what a ready server does now, and sets the finding's cause.
func occupation(c *rule.Case, f *rule.Finding) string {
	if n, at := c.Counted.Others(c.Snapshot); n > 0 {
		f.Cause = rule.Busy
		f.Cites = append(f.Cites, c.Cite("requests under way, by its own counters", "counters", at, facts.CounterField(&c.Snapshot.Counters[at])))
		return fmt.Sprintf(", while it has %s", others(n))
	}
	if c.Counted.Idle(c.Snapshot) {
		f.Cites = append(f.Cites, c.Cite("requests that run, by its own counters", "counters", c.Counted.Before, "running"))
	} else if n, cites := inFlight(c); n > 0 {
		f.Cause = rule.Busy
		f.Cites = append(f.Cites, cites...)
		return fmt.Sprintf(", while it serves %d other connections", n)
	}
	asleep, waiting := pool(c)
	switch {
	case asleep > 1 && waiting == 1:
		return fmt.Sprintf(" and is idle: %d threads wait for work, one waits for connections or timers", asleep)
	case asleep > 1 && waiting > 1:
		return fmt.Sprintf(" and is idle: %d threads wait for work, %d for connections or timers", asleep, waiting)
	}
	return " and is idle"
}

func others(n float64) string {
	if n == 1 {
		return "1 other request"
	}
	return fmt.Sprintf("%.0f other requests", n)
}

// pool counts the threads of the process at the door that wait for work (in
// futexes) and for the outside world (connections, timers): the picture that is
// so often taken for a deadlock.
func pool(c *rule.Case) (asleep, waiting int) {
	pid := c.Door.PID(c.Snapshot)
	for n := len(c.Frames) - 1; n >= 0; n-- {
		i := facts.ProcessAt(&c.Frames[n], pid)
		if i < 0 || len(c.Frames[n].Processes[i].Threads) == 0 {
			continue
		}
		for _, t := range c.Frames[n].Processes[i].Threads {
			switch call := facts.CallName(c.Host.Arch, t.Syscall); {
			case t.State != "S" || call == "" || call == "running":
			case strings.HasPrefix(call, "futex"):
				asleep++
			default:
				waiting++
			}
		}
		return asleep, waiting
	}
	return 0, 0
}

// busyShare is the processor use, as a share of one, above which a server with
// open connections is at work.
const busyShare = 0.2

// inFlight is how many connections other than whyhang's were open to a server
// that worked before it was asked; 0 when it was idle or nothing shows.
func inFlight(c *rule.Case) (int, []rule.Cite) {
	n := c.Moves.Last + 1 // looks taken before whyhang asked
	if n == 0 || c.Frames[n-1].Sockets == nil || c.Frames[n-1].Sockets.Inbound == 0 {
		return 0, nil
	}
	inbound := c.Frames[n-1].Sockets.Inbound
	cite := c.Cite("open connections to it, whyhang's not among them", "frames", n-1, "sockets", "inbound")
	if by := c.Frames[n-1].Sockets.InboundBy; by != nil && c.Door.Listener >= 0 {
		door := fmt.Sprint(c.Sockets.Listeners[c.Door.Listener].Inode)
		inbound = by[door]
		cite = c.Cite("open connections to its door, whyhang's not among them", "frames", n-1, "sockets", "inbound_by", door)
	}
	if inbound == 0 {
		return 0, nil
	}
	// Connections are kept open by idle clients too: work must show as well.
	for i := n - 1; i >= 1; i-- {
		for j := range c.Frames[i].Logs {
			if c.Frames[i].Logs[j].Activity > 0 {
				return inbound, []rule.Cite{cite, c.Cite("lines about requests since the last look", "frames", i, "logs", j, "activity")}
			}
		}
	}
	for j := range c.Frames[n-1].GPUs {
		if u := c.Frames[n-1].GPUs[j].UtilPercent; u != nil && *u > 0 {
			return inbound, []rule.Cite{cite, c.Cite("GPU utilisation in percent", "frames", n-1, "gpus", j, "util_percent")}
		}
	}
	var share float64
	for i := range c.Processes {
		s, _ := c.Moves.CPUShare(c.Processes[i].PID)
		share += s
	}
	if m := c.Moves.Most(facts.CPUUser); m != nil && share >= busyShare {
		return inbound, []rule.Cite{cite, c.Cite(facts.MoveSays(m), m.At...)}
	}
	return 0, nil
}

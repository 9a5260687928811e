package ready

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// ByItsWord is a server that was not asked and says itself that it is ready.
var ByItsWord = rule.Rule{
	ID:      "ready-by-its-word",
	Verdict: rule.Ready,
	Title:   "The server says it is ready, listens, and nobody waits at its door",
	Doc: `For runs that may not ask (--passive, --no-check). Three things together: the
engine's own ready line since its last launch, a listening socket of this very
tree, and an empty accept queue in every look. Nothing may speak against it: no
fatal line since, no part that ended, no deadlock.

It is at most strong: a server can say all that and never produce a token again.

What would make it wrong: an engine that is stuck behind a front end that still
accepts connections.

Sources: the engines' ready lines; /proc/net/tcp rx_queue of a listener.`,
	Needs:      []evidence.Need{evidence.NeedLog, evidence.NeedSockets},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Check != nil || c.Phases.Ready == nil || c.Phases.Fatal != nil || c.Door.Listener < 0 || queued(c) > 0 {
			return nil
		}
		f := rule.Finding{Cause: rule.Idle, Strength: rule.Strong,
			FlipsIf: []string{"a request is not answered"},
			Next:    []rule.Step{{Do: "Prove it: ask the server", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench", c.Target.PID)}}}
		f.Cites = append(readyLine(c), c.Cite("connections that wait to be accepted", "sockets", "listeners", c.Door.Listener, "accept_queue"))
		f.Says = fmt.Sprintf("It says it is ready (line %d of its log), listens on %s and nobody waits there", c.Phases.Ready.Hit.Line, c.Sockets.Listeners[c.Door.Listener].Address)
		f.Says += occupation(c, &f) + "; it was not asked."
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		switch {
		case c.Phases.Ready == nil && c.Phases.Known:
			return &rule.Because{Says: fmt.Sprintf("no ready line in the %d lines of the log since its launch", c.Logs[0].Lines-max(c.Logs[0].LaunchLine, 1)+1),
				Cites: []rule.Cite{c.Cite("lines read", "logs", 0, "lines")}}
		case c.Door.Listener < 0:
			return &rule.Because{Says: "it does not listen where it should"}
		case queued(c) > 0:
			return &rule.Because{Says: fmt.Sprintf("%d connections wait to be accepted", queued(c)),
				Cites: []rule.Cite{c.Cite("accept queue", "sockets", "listeners", c.Door.Listener, "accept_queue")}}
		}
		return nil
	},
}

// queued is the longest accept queue of the door in any look.
func queued(c *rule.Case) int {
	if c.Door.Listener < 0 {
		return 0
	}
	l := &c.Sockets.Listeners[c.Door.Listener]
	q := l.AcceptQueue
	for n := range c.Frames {
		if sf := c.Frames[n].Sockets; sf != nil {
			q = max(q, sf.AcceptQueues[fmt.Sprint(l.Inode)])
		}
	}
	return q
}

package unresponsive

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// WrongOwner is a port that answers for somebody else.
var WrongOwner = rule.Rule{
	ID:      "wrong-owner",
	Verdict: rule.Unresponsive,
	Title:   "The server's port belongs to another process",
	Doc: `Looks for a listener on the port of the server's command line that no process of
its tree holds, but another process does: often what was left of the last
server. Whatever answers there is not this server, and this server cannot
listen.

A server that is not that far yet is loading; the rule only fires when nothing
moves towards an end.

What would make it wrong: a proxy that was put there on purpose.

Sources: /proc/net/tcp inode and /proc/PID/fd.`,
	Needs: []evidence.Need{evidence.NeedSockets},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Door.OtherOwner < 0 || c.Door.Listener >= 0 {
			return nil
		}
		l := &c.Sockets.Listeners[c.Door.OtherOwner]
		f := rule.Finding{Cause: rule.WrongOwner, Strength: rule.Strong,
			Says:    fmt.Sprintf("Port %d, which it was told to use, belongs to %s, not to this server.", l.Port, facts.Holder(l)),
			Cites:   []rule.Cite{c.Cite("who listens there", "sockets", "listeners", c.Door.OtherOwner, "pid")},
			FlipsIf: []string{"the other process ends"},
		}
		if l.PID != 0 {
			f.Culprits = []rule.Culprit{{PID: l.PID, Name: l.PIDName, Where: "listens on " + l.Address}}
			f.Next = []rule.Step{{Do: "See what that process is", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -fp %d", l.PID)}}
		} else {
			f.Next = []rule.Step{{Do: "See what that process is", Risk: rule.RiskNone, Command: fmt.Sprintf("sudo ss -ltnp 'sport = :%d'", l.Port)}}
		}
		return []rule.Finding{f}
	},
}

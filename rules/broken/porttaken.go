package broken

import (
	"fmt"
	"strconv"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// PortTaken is a server that tried to listen and found its port in use.
var PortTaken = rule.Rule{
	ID:      "port-taken",
	Verdict: rule.Broken,
	Title:   "The server could not listen: its port is in use",
	Doc: `Looks for the line with which a server says that its address is in use (EADDRINUSE)
since the last launch, while it listens nowhere that requests would come in. The
process that holds the port now is named. Engines that open the port last find
out after the whole load, and their other processes may live on.

A ready line after that line proves nothing: a warm-up request goes to the port,
and whoever holds it has answered.

It is strong while another process holds the port, and only likely otherwise: the
line may be about another port, after which the server took the next one.

What would make it wrong: an engine that tries the port again until it is free.

Sources: bind(2) EADDRINUSE; the line as uvicorn, CPython and Go print it.`,
	Needs:      []evidence.Need{evidence.NeedLog, evidence.NeedSockets},
	Suppresses: []rule.ID{"fatal-error", "wrong-owner", "no-movement", "ready-by-its-word"},
	Eval: func(c *rule.Case) []rule.Finding {
		ev := c.Phases.AddressInUse
		if ev == nil || c.Sockets == nil || c.Door.Listener >= 0 || c.Door.Ambiguous || c.Door.NotKnown != "" || aboutAnother(ev.Hit, c.Door.WantedPort) {
			return nil
		}
		f := rule.Finding{Cause: rule.PortTaken, Strength: rule.Likely,
			Says:    fmt.Sprintf("It could not listen: %q (line %d of the log).", ev.Hit.Text, ev.Hit.Line),
			Cites:   []rule.Cite{c.Cite(fmt.Sprintf("line %d of the log", ev.Hit.Line), ev.Field("text")...)},
			FlipsIf: []string{"it listens after all"},
		}
		if c.Door.OtherOwner < 0 {
			// A server that got ready after such a line took another port.
			if c.Phases.Ready != nil {
				return nil
			}
			f.Next = []rule.Step{{Do: "See who listens on this machine", Risk: rule.RiskNone, Command: "sudo ss -ltnp"}}
			return []rule.Finding{f}
		}
		l := &c.Sockets.Listeners[c.Door.OtherOwner]
		f.Strength = rule.Strong
		f.Says = fmt.Sprintf("It could not listen: port %d is in use by %s; its log says so in line %d.", l.Port, facts.Holder(l), ev.Hit.Line)
		f.Cites = append(f.Cites, c.Cite("who listens there", "sockets", "listeners", c.Door.OtherOwner, "pid"))
		if l.PID != 0 {
			f.Culprits = []rule.Culprit{{PID: l.PID, Name: l.PIDName, Where: "listens on " + l.Address}}
			f.Next = []rule.Step{{Do: "See what holds the port, then end it or start this server with another --port", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -fp %d", l.PID)}}
		} else {
			f.Next = []rule.Step{{Do: "See what holds the port", Risk: rule.RiskNone, Command: fmt.Sprintf("sudo ss -ltnp 'sport = :%d'", l.Port)}}
		}
		return []rule.Finding{f}
	},
}

// aboutAnother: the line names a port, and not the one the server was told.
func aboutAnother(hit *evidence.Hit, wanted int) bool {
	named, err := strconv.Atoi(hit.Values["port"])
	return err == nil && wanted != 0 && named != wanted
}

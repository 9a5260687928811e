package warning

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// SharedPort warns of a server beside which another one takes requests.
var SharedPort = rule.Rule{
	ID:    "port-shared",
	Title: "Another process listens on the server's port as well",
	Doc: `Looks for a listener of another process on the very port where the server listens.
With SO_REUSEPORT, which vLLM sets, a second server starts beside what was left of
the first without an error, and the kernel deals requests out to both: some are
answered, the others may hang for ever. whyhang's own question is put on a
connection that this server has accepted.

What would make it wrong: several servers that share a port on purpose.

Sources: socket(7) SO_REUSEPORT; /proc/net/tcp and /proc/PID/fd; vLLM's
create_server_socket.`,
	Needs: []evidence.Need{evidence.NeedSockets},
	Eval: func(c *rule.Case) []rule.Finding {
		if !c.Door.Shared {
			return nil
		}
		l := &c.Sockets.Listeners[c.Door.OtherOwner]
		says := fmt.Sprintf("Port %d is shared with %s: the kernel gives it a part of the requests.", l.Port, facts.Holder(l))
		f := rule.Finding{Strength: rule.Strong, Says: says,
			Cites:   []rule.Cite{c.Cite("who else listens there", "sockets", "listeners", c.Door.OtherOwner, "inode")},
			Warning: &rule.Warning{Code: "port-shared", Says: says, Detail: "shared port", Effect: "a part of the requests is answered by another process, or by none", Misleads: true},
		}
		if l.PID != 0 {
			f.Next = []rule.Step{{Do: "See what the other one is", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -fp %d", l.PID)}}
		}
		return []rule.Finding{f}
	},
}

package stalled

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// PeerUnreachable is a server that waits for somebody who is not where it looks.
var PeerUnreachable = rule.Rule{
	ID:      "peer-unreachable",
	Verdict: rule.Stalled,
	Title:   "It waits for a peer that nobody serves",
	Doc: `Looks for a server that is not up and in which nothing moves, and for whom it
waits in vain:

A connection whose first packet was sent again and again without an answer
(SYN_SENT): the host is down, a firewall drops the packets, or the other side's
queue is full. It counts if the address is where the ranks are to meet, or if a
rank tries it before the load has begun.

An address where the ranks are to meet, on this machine, at which nobody listens:
refused attempts leave no socket, so the address is taken from the command line,
the environment (MASTER_ADDR, MASTER_PORT) or the log, and looked up among the
listeners of the target's network namespace.

Ray's placement of workers that does not come: GPUs are missing, or held by
another job.

The peer may yet come, from another host too: this is no deadlock.

What would make it wrong: a connection that has nothing to do with the start.

Sources: proc_pid_net(5), RFC 9293; PyTorch's and vLLM's own lines
(rules/engines).`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedSockets},
	Suppresses: []rule.ID{"no-movement"},
	Eval:       evalPeerUnreachable,
}

// unanswered is how often a first packet is sent again before it says something:
// the second time is 3 s after the first attempt (tcp(7), tcp_syn_retries).
const unanswered = 2

func evalPeerUnreachable(c *rule.Case) []rule.Finding {
	if c.Phases.Ready != nil || c.Phases.Stopping != nil || c.Door.Listener >= 0 || c.Sockets == nil ||
		c.Moves.WindowMS < longEnoughMS || facts.Furthest(&c.Moves) != nil {
		return nil
	}
	if f := silentPeer(c); f != nil {
		return []rule.Finding{*f}
	}
	if f := refusedPeer(c); f != nil {
		return []rule.Finding{*f}
	}
	if f := noPlacement(c); f != nil {
		return []rule.Finding{*f}
	}
	return nil
}

// waitsInVain is the finding about one peer.
func waitsInVain(c *rule.Case, says string, step rule.Step, cites ...rule.Cite) *rule.Finding {
	last := len(c.Frames) - 1
	return &rule.Finding{Cause: rule.NoMovement, Strength: rule.Strong,
		Says:    fmt.Sprintf("%s. Nothing moved in %.0f s.%s", says, c.Moves.WindowMS/1000, c.OddRanks()),
		Cites:   append(cites, c.Cite("length of the window in ms", "frames", last, "since_ms")),
		FlipsIf: []string{"the peer comes up"}, Next: []rule.Step{step}}
}

// silentPeer is an attempt to connect that nobody answers.
func silentPeer(c *rule.Case) *rule.Finding {
	for i := range c.Sockets.Connections {
		n := &c.Sockets.Connections[i]
		if n.State != "SYN_SENT" || n.Retransmits < unanswered || n.PID == 0 || !meant(c, n) {
			continue
		}
		return waitsInVain(c, fmt.Sprintf("It waits for a peer that does not answer: %s tries to reach %s and has asked %d times", c.Part(n.PID), n.Remote, n.Retransmits+1),
			rule.Step{Do: "See whether that host is up and the way to it is open", Risk: rule.RiskNone, Command: "ss -tnpo state syn-sent"},
			c.Cite("the address", "sockets", "connections", i, "remote"), c.Cite("attempts without an answer after the first", "sockets", "connections", i, "retransmits"))
	}
	return nil
}

// meant: the connection is one that the start depends on.
func meant(c *rule.Case, n *evidence.Connection) bool {
	for _, m := range c.Meetings {
		if m.Address == n.Remote {
			return true
		}
	}
	switch c.Phases.Current {
	case "", evidence.PhaseStarting, evidence.PhaseCommunicator:
		name := c.Engine.Roles[n.PID].Name
		return name == "scheduler" || name == "worker" || c.Engine.Untitled[n.PID]
	}
	return false
}

// refusedPeer is a place to meet at which nobody listens.
func refusedPeer(c *rule.Case) *rule.Finding {
	for _, m := range c.Meetings {
		if m.Endpoint < 0 {
			continue
		}
		e := &c.Sockets.Endpoints[m.Endpoint]
		if e.Local == nil || !*e.Local || e.Served == nil || *e.Served {
			continue
		}
		says := fmt.Sprintf("It waits for a peer that nobody serves: its ranks are to meet at %s (%s), and nobody listens there", m.Address, m.Because)
		f := waitsInVain(c, says, rule.Step{Do: "Look why rank 0 does not listen there", Risk: rule.RiskNone, Command: "ss -ltnp"},
			c.Cite("an address of this machine at which nobody listens", "sockets", "endpoints", m.Endpoint, "address"), c.Cite("where the address stands", m.At...))
		// That somebody tries shows in the log alone; else the address may be one
		// that is not used.
		if ev := c.Phases.Attempt(); ev != nil {
			f.Cites = append(f.Cites, c.Cite("an attempt in the log", ev.Field("text")...))
			return f
		}
		f.Strength = rule.Likely
		return f
	}
	return nil
}

// noPlacement is a wait for Ray's resources.
func noPlacement(c *rule.Case) *rule.Finding {
	ev := c.Phases.Line("common.any.placement")
	if ev == nil || c.Phases.LastLine != nil && c.Phases.LastLine.Hit.Line > ev.Hit.Line {
		return nil
	}
	says := "It waits for Ray to place its workers"
	if s := ev.Hit.Values["seconds"]; s != "" {
		says += fmt.Sprintf(", for %s s when it last said so", s)
	}
	return waitsInVain(c, says+fmt.Sprintf(" (line %d of the log): GPUs are missing, or another job holds them", ev.Hit.Line),
		rule.Step{Do: "See what Ray has to give and who has it", Risk: rule.RiskNone, Command: "ray status"},
		c.Cite("its own word", ev.Field("text")...))
}

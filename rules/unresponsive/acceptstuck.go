package unresponsive

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// AcceptStuck is a server that listens and accepts nobody.
var AcceptStuck = rule.Rule{
	ID:      "accept-stuck",
	Verdict: rule.Unresponsive,
	Title:   "Connections wait at the server's door and it accepts none",
	Doc: `Looks at the accept queue of the server's listener. The kernel makes a connection
before the server knows of it: an open port proves nothing. The rule fires when
connections waited in every look of at least five seconds and their number never
fell, or when whyhang's own connection was still waiting when the check was given
up.

Without a question it is at most likely. It is open while a GPU works or a process
computes: a server with a single loop accepts nobody during a long prefill.

What would make it wrong: a server that accepts one connection at a time and is
kept busy by that one.

Sources: listen(2), backlog; /proc/net/tcp rx_queue of a socket in state LISTEN and
inode 0 of a connection that nobody has accepted.`,
	Needs:      []evidence.Need{evidence.NeedSockets, evidence.NeedMovement},
	Suppresses: []rule.ID{"no-answer"},
	Eval: func(c *rule.Case) []rule.Finding {
		if c.Door.Listener < 0 {
			return nil
		}
		l := &c.Sockets.Listeners[c.Door.Listener]
		f := rule.Finding{Cause: rule.AcceptStuck, Strength: rule.Likely, FlipsIf: []string{"a connection is accepted"},
			Next: []rule.Step{{Do: "See the queue of the door (Recv-Q) once more", Risk: rule.RiskNone, Command: fmt.Sprintf("ss -ltn 'sport = :%d'", l.Port)}}}
		if l.Network == "unix" {
			f.Next[0].Command = "ss -lx src " + rule.Quoted(l.Address)
		}
		moves := &c.Moves
		switch n, at, seconds := waited(c, l); {
		case ownWaits(c, l) >= 0 && c.Door.Place(c.Snapshot, c.Asked.URL) == facts.PlaceOwn:
			at := ownWaits(c, l)
			f.Strength, moves = rule.Strong, &c.MovesAsked
			f.Says = fmt.Sprintf("It listens on %s and accepts nobody: %s; whyhang's connection was still waiting to be accepted.", l.Address, c.Check.Says)
			f.Cites = []rule.Cite{c.Cite(c.Check.Says, "check", "verdict"), c.Cite("whyhang's connections that nobody accepted", "frames", at, "sockets", "own_waiting", fmt.Sprint(l.Inode))}
		case n > 0 && c.Check == nil:
			f.Says = fmt.Sprintf("It listens on %s and accepts nobody: %d connections have waited there for %.0f s, and none was taken.", l.Address, n, seconds)
			f.Cites = []rule.Cite{c.Cite("connections that wait to be accepted", "frames", at, "sockets", "accept_queues", fmt.Sprint(l.Inode))}
		default:
			return nil
		}
		if m := facts.Furthest(moves); m != nil {
			f.Strength = min(f.Strength, rule.Likely)
			f.Cites = append(f.Cites, c.Cite("but something moves: "+facts.MoveSays(m), m.At...))
		}
		if busy, cite := works(c, moves); busy != "" {
			f.Strength = rule.Open
			f.Says = fmt.Sprintf("It listens on %s, has accepted nobody so far, and works: %s. A server with a single loop accepts nobody during a long prefill.", l.Address, busy)
			f.Cites = append(f.Cites, cite)
			f.Next = []rule.Step{patience(c)}
		}
		return []rule.Finding{f}
	},
	Against: func(c *rule.Case) *rule.Because {
		if c.Door.Listener < 0 {
			return nil
		}
		return &rule.Because{Says: fmt.Sprintf("no connection waited all the time at %s", c.Sockets.Listeners[c.Door.Listener].Address),
			Cites: []rule.Cite{c.Cite("accept queue", "sockets", "listeners", c.Door.Listener, "accept_queue")}}
	},
}

// waitedS is how long connections must have waited without a question.
const waitedS = 5

// waited says how many connections waited at a listener in every look before the
// server was asked, if their number never fell: at last, in which look, and for
// how many seconds; 0 otherwise.
func waited(c *rule.Case, l *evidence.Listener) (n, at int, seconds float64) {
	first := -1
	for i := range c.Frames {
		f := &c.Frames[i]
		if f.During != "" || f.Sockets == nil {
			continue
		}
		now := f.Sockets.AcceptQueues[fmt.Sprint(l.Inode)]
		if now == 0 || now < n {
			return 0, 0, 0
		}
		if n, at = now, i; first < 0 {
			first = i
		}
	}
	if first < 0 {
		return 0, 0, 0
	}
	if seconds = (c.Frames[at].SinceMS - c.Frames[first].SinceMS) / 1000; seconds < waitedS {
		return 0, 0, 0
	}
	return n, at, seconds
}

// ownWaits is the last look of the check if whyhang's own connection waited in it
// and in the one before; -1 otherwise, or if the check got an answer.
func ownWaits(c *rule.Case, l *evidence.Listener) int {
	if c.Check == nil || c.Check.Verdict != evidence.CheckError {
		return -1
	}
	last, looks := -1, 0
	for i := range c.Frames {
		f := &c.Frames[i]
		if f.During != "check" || f.Sockets == nil {
			continue
		}
		if f.Sockets.OwnWaiting[fmt.Sprint(l.Inode)] == 0 {
			looks = 0
			continue
		}
		last = i
		looks++
	}
	if looks < 2 {
		return -1
	}
	return last
}

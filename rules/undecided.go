package rules

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// undecided is the last step: no rule carried a verdict. It says what is
// missing and gives the command that would decide.
func undecided(c *rule.Case, j *Judgement) {
	j.Verdict, j.Strength = rule.Unknown, rule.Open
	pid := c.Target.PID
	switch {
	case c.Check != nil:
		askedInVain(c, j)
	case c.Target.State == evidence.TargetHidden:
		j.Cause = rule.NoPermission
		j.Sentence = fmt.Sprintf("Process %d exists, but /proc does not show it to this user (hidepid).", pid)
		j.Next = []rule.Step{sudo(c)}
	case c.Door.Listens && (c.Asked.Passive || c.Asked.NoCheck || c.Door.Ambiguous):
		j.Cause = rule.NotAsked
		j.Sentence = notAsked(c)
		j.Next = []rule.Step{{Do: "Ask it", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench", pid)}}
		if c.Door.Ambiguous {
			j.Next[0].Command = fmt.Sprintf("whyhang %d --no-bench --url http://127.0.0.1:PORT", pid)
		}
	case deniedAny(c):
		j.Cause = rule.NoPermission
		j.Sentence = "The evidence that would decide belongs to another user: " + deniedSays(c) + "."
		switch m := facts.Furthest(&c.Moves); {
		case m != nil:
			j.Sentence += " Something moves: " + facts.MoveSays(m) + "."
		case c.Moves.ThreadsLooked > 0 && c.Moves.WindowMS >= 1000:
			// Anybody may see whether threads run, not what they wait for.
			j.Sentence += fmt.Sprintf(" %d of %d threads ran in %.1f s; that cannot prove a deadlock, nor rule it out.", c.Moves.ThreadsRan, c.Moves.ThreadsLooked, c.Moves.WindowMS/1000)
		}
		j.Next = []rule.Step{sudo(c)}
	case c.Door.Listens && c.Door.Listener < 0:
		j.Cause = rule.NotAsked
		j.Sentence = wrongDoor(c)
		j.Next = []rule.Step{{Do: "If requests go to one of these, name it", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench --url http://HOST:PORT", pid)}}
	case c.Door.Listens:
		j.Cause = rule.NotAsked
		j.Sentence = notAsked(c)
		j.Next = []rule.Step{{Do: "Ask it", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench", pid)}}
	case len(c.Processes) > 0 && c.Processes[0].Kernel:
		j.Cause = rule.NotAServer
		j.Sentence = fmt.Sprintf("Process %d (%s) is a thread of the kernel, no program.", pid, c.Processes[0].Name)
		j.Next = []rule.Step{{Do: "Find the server's PID", Risk: rule.RiskNone, Command: "pgrep -af 'sglang|vllm|llama|trtllm'"}}
	case !c.Moves.Looked || c.Moves.WindowMS < 1000:
		j.Cause = rule.TooShort
		j.Sentence = "Too short a look to tell movement from rest."
		if c.Interrupted {
			j.Sentence = "Interrupted: too short a look to tell movement from rest."
		}
		j.Next = []rule.Step{longer(pid)}
	case c.Engine.Known == nil && !c.WeightsDone.Held:
		j.Cause = rule.NotAServer
		j.Sentence = notAServer(c)
		j.Next = []rule.Step{{Do: "See whether the PID is the right one", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -fp %d; pgrep -af 'sglang|vllm|llama|trtllm'", pid)}}
	case facts.Furthest(&c.Moves) == nil && c.Moves.WindowMS >= 1000 && c.Moves.WindowMS < 5000:
		j.Cause = rule.TooShort
		j.Sentence = fmt.Sprintf("Nothing moved in %.1f s, which is too short to call it stalled.", c.Moves.WindowMS/1000)
		j.Next = []rule.Step{longer(pid)}
	default:
		j.Cause = rule.Conflicting
		j.Sentence = conflicting(c)
		j.Next = []rule.Step{longer(pid)}
		if f := perhaps(j, rule.Loading); f != nil {
			j.Sentence = f.Says
			j.Next = append(stacks(c, f), j.Next...)
		}
	}
}

// perhaps is a finding for a verdict that no more speaks for than against.
func perhaps(j *Judgement, v rule.Verdict) *rule.Finding {
	for i := range j.Findings {
		if f := &j.Findings[i]; f.Verdict == v && f.Strength == rule.Open {
			return f
		}
	}
	return nil
}

// stacks is what tells work from a spin: the stack of a busy process, twice.
func stacks(c *rule.Case, f *rule.Finding) []rule.Step {
	pid := c.Target.PID
	for _, k := range f.Culprits {
		pid = k.PID
	}
	return []rule.Step{{Do: "Look twice where it computes: a stack that differs is work", Risk: rule.RiskLow,
		Command: fmt.Sprintf("py-spy dump --nonblocking --pid %d; sleep 20; py-spy dump --nonblocking --pid %d", pid, pid)}}
}

// askedInVain is for a server that was asked and could not be, for a reason
// that says nothing about its health.
func askedInVain(c *rule.Case, j *Judgement) {
	pid := c.Target.PID
	if c.Door.Place(c.Snapshot, c.Asked.URL) == facts.PlaceElsewhere {
		j.Cause = rule.Conflicting
		listens := "which listens nowhere"
		if own := c.Door.OwnAddresses(c.Snapshot); len(own) > 0 {
			listens = "which listens on " + strings.Join(own[:min(3, len(own))], ", ")
		}
		j.Sentence = fmt.Sprintf("%s is no socket of this server, %s: what it answered (%s) says nothing about it.", c.Check.URL, listens, c.Check.Says)
		j.Next = []rule.Step{
			{Do: "Ask the server's own socket: leave --url out", Risk: rule.RiskLow, Command: fmt.Sprintf("whyhang %d --no-bench", pid)},
			{Do: "See who listens where", Risk: rule.RiskNone, Command: "ss -ltnp"},
		}
		return
	}
	switch c.Check.Verdict {
	case evidence.CheckUnauthorised:
		j.Cause = rule.NoPermission
		j.Sentence = "It answers HTTP and wants an API key: " + c.Check.Says + "."
		j.Next = []rule.Step{{Do: "Name the variable that holds the key", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --api-key-env NAME", pid)}}
	case evidence.CheckNoEndpoint:
		j.Cause = rule.Conflicting
		j.Sentence = "It listens and answers HTTP, but not the question: " + c.Check.Says + "."
		j.Next = []rule.Step{{Do: "If its chat API is elsewhere, or wants another model name, say so", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --url http://HOST:PORT --model NAME", pid)}}
	case evidence.CheckBusy:
		j.Cause = rule.Conflicting
		j.Sentence = "It is up and turns requests away for now: " + c.Check.Says + "."
		j.Next = []rule.Step{{Do: "Ask again when it is less busy", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --no-bench", pid)}}
	case evidence.CheckError, evidence.CheckEmpty:
		if f := perhaps(j, rule.Unresponsive); f != nil {
			j.Cause, j.Sentence, j.Next, j.FlipsIf = rule.Conflicting, f.Says, f.Next, f.FlipsIf
			return
		}
		fallthrough
	default:
		j.Cause = rule.Conflicting
		j.Sentence = "The answer to the check decides nothing: " + c.Check.Says + "."
		j.Next = []rule.Step{longer(pid)}
	}
}

// sudo is the step for missing rights. Root has them all, but in a container
// or under a security module not over everybody.
func sudo(c *rule.Case) rule.Step {
	if c.Host.UID == 0 {
		return rule.Step{Do: "Even root may not read it from here; look from the host, by its PID there", Risk: rule.RiskNone, Command: "whyhang PID-ON-THE-HOST"}
	}
	return rule.Step{Do: "Look with the rights that are missing", Risk: rule.RiskNone, Command: fmt.Sprintf("sudo whyhang %d", c.Target.PID)}
}

func longer(pid int) rule.Step {
	return rule.Step{Do: "Look longer", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --window 60s", pid)}
}

func deniedAny(c *rule.Case) bool { return len(c.Tree.Denied) > 0 }

// decisive are the files whose loss costs verdicts, the most costly first.
var decisive = []string{"/syscall", "/fd", "/maps", "/mem", "/io"}

// deniedSays names what was denied, the decisive files first.
func deniedSays(c *rule.Case) string {
	var parts []string
	for _, ending := range decisive {
		for _, d := range c.Tree.Denied {
			if strings.HasSuffix(d.Unread.What, ending) {
				parts = append(parts, fmt.Sprintf("%s (%s)", d.Unread.What, d.Unread.Why))
				break
			}
		}
	}
	if len(parts) == 0 {
		d := c.Tree.Denied[0]
		parts = append(parts, fmt.Sprintf("%s (%s)", d.Unread.What, d.Unread.Why))
	}
	if rest := len(c.Tree.Denied) - len(parts); rest > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(parts, ", ")
}

func notAsked(c *rule.Case) string {
	switch {
	case c.Asked.Passive:
		return "It listens, and --passive forbade asking; nothing else proves that it works."
	case c.Asked.NoCheck:
		return "It listens, and --no-check forbade asking; nothing else proves that it works."
	case c.Door.Ambiguous:
		return "It listens on several ports, and nothing tells which of them takes requests; none was asked."
	}
	return "It listens and was not asked."
}

// wrongDoor is for a server that listens, but nowhere where it could be asked.
func wrongDoor(c *rule.Case) string {
	own := c.Door.OwnAddresses(c.Snapshot)
	if len(own) == 0 {
		return "It listens on unix sockets alone, and nothing tells which of them takes requests; none was asked."
	}
	says := "It listens on " + strings.Join(own[:min(3, len(own))], ", ")
	if port := c.Door.WantedPort; port != 0 {
		return says + fmt.Sprintf(", but not on port %d, where requests should come in (%s); it was not asked.", port, c.Door.WantedBecause)
	}
	return says + ", and nothing tells that requests come in there; it was not asked."
}

func notAServer(c *rule.Case) string {
	says := "It shows no sign of an inference server: it listens nowhere, has no weight file in its hands and no known command line or log."
	if c.Moves.ThreadsLooked > 0 {
		says += fmt.Sprintf(" %d of %d threads ran in %.1f s.", c.Moves.ThreadsRan, c.Moves.ThreadsLooked, c.Moves.WindowMS/1000)
	}
	return says
}

func conflicting(c *rule.Case) string {
	if ev := c.Phases.Ready; ev != nil && !c.Door.Listens {
		return fmt.Sprintf("Its log says it is ready (line %d), and it listens nowhere.", ev.Hit.Line)
	}
	if m := facts.Furthest(&c.Moves); m != nil {
		return "Something moves, and nothing tells whether towards an end: " + facts.MoveSays(m) + "."
	}
	return "It neither listens nor moves, and that is not enough to call it stalled."
}

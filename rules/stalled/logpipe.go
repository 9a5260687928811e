package stalled

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// LogPipe is a server that cannot write its log.
var LogPipe = rule.Rule{
	ID:      "log-pipe-full",
	Verdict: rule.Stalled,
	Title:   "It waits to write to its log: the pipe is full and nobody reads",
	Doc: `Looks for a thread of a part that the server needs, asleep in a write to its
standard output or standard error, where that is a pipe, in every look over
seconds. A pipe holds 64 KiB; when the logger behind it is stopped, hangs or is
full itself, the next line of the log stops whoever writes it, and whatever waits
for that one. The log then ends in the middle of something healthy.

It is no deadlock: the server goes on as soon as somebody reads. A circle, in
which the reader waits for the writer, is said by rule pipe-cycle.

What would make it wrong: a reader that takes long pauses.

Sources: pipe(7); measured on vLLM and SGLang behind a stopped cat.`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedLockWords},
	Suppresses: []rule.ID{"no-movement"},
	Eval:       evalLogPipe,
}

// fullForMS is how long a writer must have waited: a logger that reads in
// batches lets it wait for moments.
const fullForMS = 2000

func evalLogPipe(c *rule.Case) []rule.Finding {
	if len(c.Waits) < 2 {
		return nil
	}
	last := len(c.Waits) - 1
	var found []rule.Finding
	for i := range c.Waits[last].Waits {
		w := &c.Waits[last].Waits[i]
		if !writesLog(w) || w.AsleepMS == nil || *w.AsleepMS < fullForMS || !needed(c, w.PID) {
			continue
		}
		f := rule.Finding{Cause: rule.NoMovement, Strength: rule.Strong,
			Culprits: []rule.Culprit{{PID: w.PID, TID: w.TID, Name: c.ThreadName(w.PID, w.TID), Where: fmt.Sprintf("writes to the full pipe behind descriptor %d", w.Blocked.FD)}},
			Cites: []rule.Cite{
				c.Cite("what it writes to", "waits", last, "waits", i, "blocked", "object"),
				c.Cite("for how long it has not run, in ms", "waits", last, "waits", i, "asleep_ms"),
			},
			FlipsIf: []string{"somebody reads from the pipe"},
		}
		f.Says = fmt.Sprintf("%s of %s waits to write to its log: the pipe behind descriptor %d is full, and ", rule.Capital(c.Thread(w.PID, w.TID)), c.Process(w.PID), w.Blocked.FD)
		if len(w.Blocked.Wakers) == 0 {
			f.Says += "nobody that whyhang can see reads from it."
			f.Next = []rule.Step{{Do: "Find who should read it", Risk: rule.RiskNone, Command: fmt.Sprintf("sudo lsof +E -p %d -a -d %d", w.PID, w.Blocked.FD)}}
			return append(found, f)
		}
		reader := w.Blocked.Wakers[0]
		f.Says += fmt.Sprintf("process %d %q, which should read from it, does not. It goes on as soon as that is done.", reader.PID, reader.Name)
		f.Culprits = append(f.Culprits, rule.Culprit{PID: reader.PID, Name: reader.Name, Where: "has the other end of the pipe and does not read"})
		f.Cites = append(f.Cites, c.Cite("who has the other end", "waits", last, "waits", i, "blocked", "wakers", 0, "pid"))
		f.Next = []rule.Step{
			{Do: "See what the reader does: state T is stopped", Risk: rule.RiskNone, Command: fmt.Sprintf("ps -o pid,ppid,stat,wchan:32,args -p %d", reader.PID)},
			{Do: "If it is stopped, continue it; ending it instead would end the server by SIGPIPE", Risk: rule.RiskLow, Command: fmt.Sprintf("kill -CONT %d", reader.PID)},
		}
		return append(found, f)
	}
	return found
}

// writesLog: asleep in one and the same write to standard output or error.
func writesLog(w *evidence.Wait) bool {
	b := w.Blocked
	return b != nil && b.Kind == evidence.BlockPipeWrite && (b.FD == 1 || b.FD == 2) && w.A.Syscall != "" && w.A.Syscall == w.B.Syscall
}

// needed: what waits is the server, or a part it cannot do without.
func needed(c *rule.Case, pid int) bool {
	return matters(c, pid) || c.Engine.Known == nil
}

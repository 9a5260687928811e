package stalled

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Storage is a server that waits for a file system which gives nothing.
var Storage = rule.Rule{
	ID:      "storage",
	Verdict: rule.Stalled,
	Title:   "Storage does not answer",
	Doc: `Looks for threads that sleep in one and the same call over the whole window, in a
place of the kernel where only a file system can wake them: in read, pread, open
or stat, or in a page fault on a mapped file. Meanwhile their process reads
nothing: not by calls, not from storage, no page is mapped in, no descriptor
moves on.

The file is that of the call's descriptor, and the mount that of the file. For
a page fault and for calls that name a path neither can be read; then the mount
of the weights in its hands is named, and said to be a guess.

Storage over a network pauses, so there three looks over the whole window are
required, and two for a local file system. The state letter decides nothing: a
thread that waits for FUSE or NFS is in S as often as in D.

This is no deadlock: the store may answer again.

What would make it wrong: a pause of the store that is longer than the window,
and a thread that waits for a file nobody needs.

Sources: proc_pid_syscall(5), proc_pid_fdinfo(5) mnt_id, proc_pid_mountinfo(5),
proc_pid_io(5); kernel functions as seen on Linux 6.18 (request_wait_answer of FUSE,
rpc_wait_bit_killable of NFS, folio_wait_bit_common of the page cache).`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedThreadStates},
	Suppresses: []rule.ID{"no-movement", "no-answer", "accept-stuck", "engine-stuck"},
	Eval:       evalStorage,
	Against:    againstStorage,
}

// The least number of looks.
const (
	looksLocal   = 2
	looksNetwork = 3
)

func evalStorage(c *rule.Case) []rule.Finding {
	if c.WeightsDone.Moving() {
		return nil // bytes come
	}
	var stuck []facts.AtStorage
	for _, a := range c.AtStorage {
		enough := a.Looks >= looksLocal && !a.Network || a.Looks >= looksNetwork
		// Over the whole window: the first and the last looks at threads may lie
		// a little inside it.
		if a.Still && enough && a.MS >= longEnoughMS && a.MS >= 0.8*c.Moves.WindowMS {
			stuck = append(stuck, a)
		}
	}
	if len(stuck) == 0 {
		return nil
	}
	a := worst(stuck)
	f := rule.Finding{Cause: rule.Storage, Strength: rule.Likely,
		Says: fmt.Sprintf("Storage does not answer: %s of %s sleeps %s, and nothing was read for %.0f s.",
			c.Thread(a.PID, a.TID), whoIs(c, a.PID), sleepsIn(c, a), a.MS/1000),
		Cites: []rule.Cite{
			c.Cite("the kernel function it sleeps in", append(a.At, "wchan")...),
			c.Cite("its system call at the first look, as at the last", append(a.FirstAt, "syscall")...),
		},
		FlipsIf: []string{"the thread runs, or any byte comes, in a longer look"},
		Next:    nextAtStorage(c, a),
	}
	if a.Wait.Mount != nil {
		f.Cites = append(f.Cites, c.Cite("the file system it waits for", append(a.At, "mount", "fs_type")...))
	}
	last := a.At[1].(int)
	if j := facts.ProcessAt(&c.Frames[last], a.PID); j >= 0 && c.Frames[last].Processes[j].ReadCharBytes != nil {
		f.Cites = append(f.Cites, c.Cite("bytes it has read by calls, as at the first look", "frames", last, "processes", j, "read_char_bytes"))
	}
	if n := len(stuck) - 1; n > 0 {
		f.Says += fmt.Sprintf(" So do %d more threads.", n)
	}
	for _, s := range stuck[:min(len(stuck), maxCulprits)] {
		f.Culprits = append(f.Culprits, rule.Culprit{PID: s.PID, TID: s.TID, Name: s.Wait.Name, Where: "asleep " + sleepsIn(c, s)})
	}
	// A server that is up may have a thread that waits for something of no
	// importance; if it does not answer, that one has the blame.
	if c.Phases.Ready == nil || c.Check != nil && c.Check.Verdict == evidence.CheckError {
		f.Strength = rule.Strong
	}
	return []rule.Finding{f}
}

const maxCulprits = 16

// worst is the one that says the most: its file is known, it never ran.
func worst(stuck []facts.AtStorage) facts.AtStorage {
	best, most := 0, -1
	for i, a := range stuck {
		says := 0
		if a.Wait.Path != "" {
			says += 4
		}
		if a.Wait.Mount != nil {
			says += 2
		}
		if a.Asleep {
			says++
		}
		if says > most {
			best, most = i, says
		}
	}
	return stuck[best]
}

func whoIs(c *rule.Case, pid int) string {
	if i, ok := c.Tree.Index[pid]; ok {
		return fmt.Sprintf("process %d (%s)", pid, c.Engine.RoleOf(&c.Processes[i]))
	}
	return fmt.Sprintf("process %d", pid)
}

// sleepsIn says in which call, on which file, of which mount.
func sleepsIn(c *rule.Case, a facts.AtStorage) string {
	w := a.Wait
	does := "in the kernel"
	switch call := facts.CallName(c.Host.Arch, w.Syscall); call {
	case "", "running":
	case "no system call":
		does = "in a page fault"
	default:
		does = "in " + call
	}
	if w.Path != "" {
		does += " of " + w.Path
	}
	if w.Wchan != "" {
		does += " (" + w.Wchan + ")"
	}
	if w.Mount == nil {
		return does + ", on a file that is not known"
	}
	on := fmt.Sprintf("the %s mount %s", w.Mount.FSType, w.Mount.Point)
	if w.Mount.Source != "" && w.Mount.Source != "none" {
		on += " from " + w.Mount.Source
	}
	if w.Guessed {
		return does + ", on a file that is not known: by what else it has in its hands, on " + on
	}
	return does + " on " + on
}

// nextAtStorage are the steps: stat would hang as well, so all have a limit.
func nextAtStorage(c *rule.Case, a facts.AtStorage) []rule.Step {
	var steps []rule.Step
	if m := a.Wait.Mount; m != nil {
		at := m.Point
		if i, ok := c.Tree.Index[a.PID]; ok && c.Processes[i].Container != "" {
			at = fmt.Sprintf("/proc/%d/root%s", a.PID, m.Point)
		}
		steps = append(steps, rule.Step{Do: "See whether the mount answers at all", Risk: rule.RiskLow, Command: "timeout 5 ls " + rule.Quoted(at)})
		if strings.HasPrefix(m.FSType, "nfs") {
			steps = append(steps, rule.Step{Do: "See whether the NFS client gets answers (retrans grows without them)", Risk: rule.RiskNone, Command: "nfsstat -c; nfsiostat 1 3"})
		}
	}
	return append(steps,
		rule.Step{Do: "Read what the kernel says of the device or server", Risk: rule.RiskNone, Command: "dmesg -T | grep -iE 'not responding|i/o error|blocked for more|timed out' | tail"},
		rule.Step{Do: "Look longer: if the store answers again, the server goes on by itself", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --window 60s", c.Target.PID)})
}

func againstStorage(c *rule.Case) *rule.Because {
	if w := &c.WeightsDone; w.Moving() {
		return &rule.Because{Says: fmt.Sprintf("storage gives bytes: %s/s", facts.Bytes(w.Rate)), Cites: []rule.Cite{c.Cite(w.How, w.At...)}}
	}
	for _, a := range c.AtStorage {
		if !a.Still {
			return &rule.Because{Says: fmt.Sprintf("a thread waits for storage, and process %d reads meanwhile", a.PID), Cites: []rule.Cite{c.Cite("where it waits", append(a.At, "wchan")...)}}
		}
	}
	if len(c.AtStorage) == 0 {
		return &rule.Because{Says: "no thread waited for a file system in every look"}
	}
	return nil
}

package deadlocked

import (
	"fmt"
	"path"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// StaleLockFile is a lock file that nobody will ever remove.
var StaleLockFile = rule.Rule{
	ID:      "stale-lock-file",
	Verdict: rule.Deadlocked,
	Title:   "It waits for a lock file that a killed build left behind",
	Doc: `Looks for a file called "lock" in a build directory of torch extensions, which
counts as held as long as it exists. Whoever builds makes it, keeps it open, and
removes it at the end; a builder that is killed leaves it, and every later start
looks for it ten times a second, for ever, and prints nothing.

Two things are required that do not depend on each other. The maker is gone: no
process of the machine has the file open, and it is older than every process of
the tree (or carries the mode that file_baton gives it, whose makers keep it
open); where not all processes can be seen, it is hours old. And a thread of the
tree waits for such a file: it wakes about ten times a second, in file_baton.py
by Python's own stack or, where that stack cannot be read and the environment
names the directory, in the first thread of its process. On top of that nothing
comes further over the window, and no compiler lives in the tree.

Lock files of the filelock package (*.lock of the Hugging Face hub, flashinfer,
torch inductor) are no such thing: what counts is the kernel's lock on them,
which ends with its holder. Files of that kind that lie about are harmless.

What would make it wrong: a directory named by the environment in which a lock
lies about unused, beside a first thread, of no readable stack, that naps in the
same rhythm for another reason. PyTorch since July
2026 takes the kernel's lock instead; an old file may stay beside it. A directory
shared with other machines keeps the rule silent.

Sources: torch/utils/file_baton.py, torch/utils/cpp_extension.py; PyTorch issue
189245 and pull request 190543.`,
	Needs:      []evidence.Need{evidence.NeedThreadSyscalls, evidence.NeedMovement, evidence.NeedCaches},
	Suppresses: []rule.ID{"no-movement", "phase-moves"},
	Eval:       evalStaleLockFile,
	Against:    againstStaleLockFile,
}

// staleWindowMS is the shortest window in which "nothing came further" says
// anything.
const staleWindowMS = 5000

func evalStaleLockFile(c *rule.Case) []rule.Finding {
	if c.Phases.Ready != nil || c.Phases.Stopping != nil || c.Moves.WindowMS < staleWindowMS || len(c.Compilers.At) > 0 {
		return nil
	}
	// A server that is up may nap as well, and an old file is none of its.
	if c.Door.Listens && (c.Engine.Known == nil || !c.Engine.Known.ListensEarly) {
		return nil
	}
	if facts.Furthest(&c.Moves) != nil || facts.Works(&c.Moves) {
		return nil
	}
	var stale []facts.LockFile
	for _, l := range c.LockFiles {
		if l.Kind == evidence.LockPresence && l.Doubt == "" && l.WaitedFor(c.Snapshot) {
			stale = append(stale, l)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	l := stale[0]
	f := rule.Finding{Cause: rule.StaleLockFile, Strength: rule.Strong,
		FlipsIf: []string{"the lock file is removed", "a process opens the lock file, or a compiler starts"},
		Says: fmt.Sprintf("It waits for a lock file that nobody will remove: %s is %s old, no process has it open, and no compiler runs.%s",
			l.Path, facts.Lasting(l.AgeS), others(stale)),
		Cites: []rule.Cite{
			c.Cite("when the lock file was made", "caches", l.Cache, "locks", l.Lock, "modified"),
		}}
	if l.Older {
		f.Cites = append(f.Cites, c.Cite("start of the server, which is later", "processes", 0, "started"))
	} else {
		f.Cites = append(f.Cites, c.Cite("the lock file has the mode that file_baton gives it, whose makers keep it open", "caches", l.Cache, "locks", l.Lock, "executable"))
	}
	for _, n := range l.Waits {
		f.Cites = append(f.Cites, c.Cite(fmt.Sprintf("%s of process %d sleeps for a moment %.0f times a second", c.Thread(n.PID, n.TID), n.PID, n.PerS),
			"frames", n.Frame, "processes", n.Process, "threads", n.Thread, "slices"))
		f.Culprits = append(f.Culprits, rule.Culprit{PID: n.PID, TID: n.TID, Name: c.ThreadName(n.PID, n.TID), Where: fmt.Sprintf("looks %.0f times a second whether %s is gone", n.PerS, l.Path)})
	}
	f.Cites = append(f.Cites, c.Cite("when it was asked who has it open: nobody", "caches", l.Cache, "locks", l.Lock, "asked"))
	f.Next = []rule.Step{{Do: "Make sure that no build of it runs, here or on a machine that shares the directory", Risk: rule.RiskNone,
		Command: fmt.Sprintf("fuser -v %s; pgrep -a 'ninja|nvcc|cicc|ptxas|cc1plus'", rule.Quoted(l.Path))}}
	for _, s := range stale[:min(3, len(stale))] {
		f.Next = append(f.Next, rule.Step{Do: "If none does, remove the lock file; the server goes on by itself. While a build runs this breaks the build", Risk: rule.RiskLow, Command: "rm " + rule.Quoted(s.Path)})
	}
	f.Next = append(f.Next, rule.Step{Do: fmt.Sprintf("If it then fails to load a half-built extension, remove %s as well and start again", path.Dir(l.Path)), Risk: rule.RiskLow})
	return []rule.Finding{f}
}

// others says that there are more such files: which of them is waited for does
// not show.
func others(stale []facts.LockFile) string {
	switch n := len(stale) - 1; n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" There is another like it: %s.", stale[1].Path)
	default:
		return fmt.Sprintf(" There are %d more like it, such as %s.", n, stale[1].Path)
	}
}

func againstStaleLockFile(c *rule.Case) *rule.Because {
	for _, l := range c.LockFiles {
		if l.Kind != evidence.LockPresence {
			continue
		}
		cite := []rule.Cite{c.Cite("a lock file of a build", "caches", l.Cache, "locks", l.Lock, "path")}
		for k, h := range l.Holders {
			return &rule.Because{Says: fmt.Sprintf("the lock file %s is held: process %d (%s) has it open", l.Path, h.PID, h.Name),
				Cites: append(cite, c.Cite("who has it open", "caches", l.Cache, "locks", l.Lock, "holders", k, "pid"))}
		}
		switch {
		case len(c.Compilers.At) > 0:
			return &rule.Because{Says: "compilers run", Cites: []rule.Cite{c.Cite("a compiler", "processes", c.Compilers.At[0], "name")}}
		case len(l.Waits) == 0:
			return &rule.Because{Says: fmt.Sprintf("there is a lock file, %s, and no thread waits for it as far as can be seen", l.Path), Cites: cite}
		case l.Doubt != "":
			return &rule.Because{Says: fmt.Sprintf("the lock file %s may be in use: %s", l.Path, l.Doubt), Cites: cite}
		}
	}
	for i := range c.Caches {
		for k := range c.Caches[i].Locks {
			l := &c.Caches[i].Locks[k]
			if l.Kind == evidence.LockKernel && len(l.Holders) == 0 {
				return &rule.Because{Says: "lock files such as " + l.Path + " lie about, held by nobody; that is harmless, as the kernel's lock counts, not the file",
					Cites: []rule.Cite{c.Cite("a lock file that nobody holds", "caches", i, "locks", k, "path")}}
			}
		}
	}
	return nil
}

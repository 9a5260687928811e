package loading

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// WaitsForBuild is a server that waits for what another program builds.
var WaitsForBuild = rule.Rule{
	ID:      "waits-for-build",
	Verdict: rule.Loading,
	Title:   "It waits for a build or download of another program",
	Doc: `Looks for a lock file in a cache that a living process outside of the tree has
open (or has locked, where the kernel's lock counts), while a thread of the tree
looks for it ten or twenty times a second, as the waiters of torch extensions
and of the filelock package do. Two servers that start at once with one home
directory build each kernel once, and one waits for the other.

It is loading only if the holder, or a process below it, uses the processor. It
is likely at most: what the other program does is not known.

What would make it wrong: a holder that works at something else.

Sources: torch/utils/file_baton.py; filelock; proc_pid_fdinfo(5); proc_locks(5).`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedCaches},
	Suppresses: []rule.ID{"no-movement", "download-stalled"},
	Eval: func(c *rule.Case) []rule.Finding {
		if upAlready(c) {
			return nil
		}
		for _, l := range c.LockFiles {
			if len(l.Waits) == 0 || len(l.Outside) == 0 {
				continue
			}
			for k, h := range l.Holders {
				if _, ours := c.Tree.Index[h.PID]; ours || h.WorkMS == nil || h.OverMS == nil || *h.OverMS < 500 || *h.WorkMS < worksMS**h.OverMS {
					continue
				}
				p := phase(c, evidence.PhaseKernelBuild)
				return []rule.Finding{{Cause: rule.WaitingForPeer, Strength: rule.Likely, Phase: p, Next: again(c, p),
					Says: fmt.Sprintf("It waits for process %d (%s), which holds the lock %s and works: %.0f %% of a processor.%s", h.PID, h.Name, l.Path,
						100**h.WorkMS / *h.OverMS, patience(p)),
					Culprits: []rule.Culprit{{PID: h.PID, Name: h.Name, Where: "holds the lock " + l.Path}},
					Cites: []rule.Cite{
						c.Cite("processor time in ms of the process that holds the lock", "caches", l.Cache, "locks", l.Lock, "holders", k, "work_ms"),
						citeNap(c, l.Waits[0]),
					},
					FlipsIf: []string{fmt.Sprintf("process %d uses no processor any more, or ends and leaves the lock file", h.PID)}}}
			}
		}
		return nil
	},
}

// worksMS is the least share of a processor that counts as work.
const worksMS = 0.1

// citeNap cites how often a thread woke.
func citeNap(c *rule.Case, n facts.Nap) rule.Cite {
	return c.Cite(fmt.Sprintf("%s of process %d sleeps for a moment %.0f times a second", c.Thread(n.PID, n.TID), n.PID, n.PerS),
		"frames", n.Frame, "processes", n.Process, "threads", n.Thread, "slices")
}

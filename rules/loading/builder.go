package loading

import (
	"fmt"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// forWhom names the process that builds: " for process 12 (scheduler TP0)".
func forWhom(c *rule.Case) string {
	if len(c.Compilers.Builders) == 0 {
		return ""
	}
	s := " for " + who(c, c.Compilers.Builders[0])
	if n := len(c.Compilers.Builders); n > 1 {
		s += fmt.Sprintf(" and %d more", n-1)
	}
	return s
}

// waitForBuilder counts the processes that wait for a lock of the builder: they
// sleep in flock on a file that it has locked, or look again and again for the
// lock file that it has open.
func waitForBuilder(c *rule.Case) (says string, cites []rule.Cite) {
	holds := func(pid int) bool { return slices.Contains(c.Compilers.Builders, pid) }
	var waiting []int
	lock := ""
	add := func(pid int) {
		if !holds(pid) && !slices.Contains(waiting, pid) {
			waiting = append(waiting, pid)
		}
	}
	if last := len(c.Waits) - 1; last >= 0 {
		for i := range c.Waits[last].Waits {
			w := &c.Waits[last].Waits[i]
			if w.Blocked == nil || w.Blocked.Kind != evidence.BlockFlock || !slices.ContainsFunc(w.Blocked.Wakers, func(k evidence.Waker) bool { return holds(k.PID) }) {
				continue
			}
			if lock == "" {
				lock = w.Blocked.Object
				cites = append(cites, c.Cite("a lock of the builder, for which others wait", "waits", last, "waits", i, "blocked", "object"))
			}
			add(w.PID)
		}
	}
	for _, l := range c.LockFiles {
		if !slices.ContainsFunc(l.Inside, func(h evidence.FileHolder) bool { return holds(h.PID) }) || len(l.Waits) == 0 {
			continue
		}
		if lock == "" {
			lock = l.Path
			cites = append(cites, c.Cite("a lock file that the builder has open", "caches", l.Cache, "locks", l.Lock, "path"))
		}
		for _, n := range l.Waits {
			add(n.PID)
		}
	}
	switch len(waiting) {
	case 0:
		return "", nil
	case 1:
		return fmt.Sprintf(" %s waits for its lock %s.", rule.Capital(who(c, waiting[0])), lock), cites
	}
	return fmt.Sprintf(" %d processes wait for its lock %s.", len(waiting), lock), cites
}

package facts

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// untitled finds the processes whose part does not show. A child of Python's
// multiprocessing has no title until the engine sets one, which may be after
// minutes, or never. A child that was just forked still has its parent's command
// line, or its title: it may become a part, or a compiler, and is no second copy
// of its parent.
func (e *Engine) untitled(s *evidence.Snapshot) {
	e.Untitled = map[int]bool{}
	argv := make(map[int][]string, len(s.Processes))
	for i := range s.Processes {
		argv[s.Processes[i].PID] = s.Processes[i].Argv
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID == e.MainPID || p.Kernel {
			continue
		}
		parent := argv[p.PPID]
		copied := len(p.Argv) > 0 && slices.Equal(p.Argv, parent)
		switch {
		case copied:
			delete(e.Roles, p.PID)
			e.Untitled[p.PID] = true
		case len(p.Argv) == 0: // not readable, or ended
			_, named := e.Roles[p.PID]
			e.Untitled[p.PID] = !named
		case engines.IsUntitled(p):
			_, titled := e.Roles[p.PID]
			e.Untitled[p.PID] = !titled
		}
	}
}

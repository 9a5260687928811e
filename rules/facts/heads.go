package facts

import "github.com/whyhang/whyhang/probes/evidence"

// HeadCount compares the processes the command line asks for with those that
// live.
type HeadCount struct {
	Role     string
	Expected int
	Because  string
	// Living are the PIDs that live; Dead those that were seen and have ended.
	Living []int
	Dead   []int
}

// Missing is how many that were expected were never seen, or are gone without
// a trace.
func (h HeadCount) Missing() int {
	return max(0, h.Expected-len(h.Living)-len(h.Dead))
}

func headsOf(s *evidence.Snapshot, f *Facts) []HeadCount {
	if f.Engine.Known == nil || f.Engine.Known.Heads == nil {
		return nil
	}
	var counts []HeadCount
	for _, h := range f.Engine.Known.Heads(f.Engine.Command) {
		c := HeadCount{Role: h.Role, Expected: h.Count, Because: h.Because}
		for i := range s.Processes {
			p := &s.Processes[i]
			if f.Engine.Roles[p.PID].Name != h.Role {
				continue
			}
			if f.Tree.Alive[p.PID] {
				c.Living = append(c.Living, p.PID)
			} else {
				c.Dead = append(c.Dead, p.PID)
			}
		}
		counts = append(counts, c)
	}
	return counts
}

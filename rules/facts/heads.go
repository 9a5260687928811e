package facts

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// HeadCount compares the processes the command line asks for with those that
// live.
type HeadCount struct {
	Role     string
	Expected int
	Because  string
	// Living are the PIDs that live; Dead those that were seen and have ended.
	Living []int
	Dead   []int
	// Untitled counts living processes that may be any part.
	Untitled int
	// Absent are the names of the ranks that nobody plays, where the ranks are
	// numbered from 0 in one dimension.
	Absent []string
}

// Missing is how many that were expected were never seen, or are gone without
// a trace: whoever has no title yet may be one of them.
func (h HeadCount) Missing() int {
	return max(0, h.Expected-len(h.Living)-len(h.Dead)-h.Untitled)
}

func headsOf(s *evidence.Snapshot, f *Facts) []HeadCount {
	if f.Engine.Known == nil || f.Engine.Known.Heads == nil {
		return nil
	}
	untitled := 0
	for pid := range f.Engine.Untitled {
		if f.Engine.Untitled[pid] && f.Tree.Alive[pid] {
			untitled++
		}
	}
	var counts []HeadCount
	for _, h := range f.Engine.Known.Heads(f.Engine.Command) {
		c := HeadCount{Role: h.Role, Expected: h.Count, Because: h.Because, Untitled: untitled}
		var ranks []string
		for i := range s.Processes {
			p := &s.Processes[i]
			r := f.Engine.Roles[p.PID]
			if r.Name != h.Role {
				continue
			}
			if f.Tree.Alive[p.PID] {
				c.Living = append(c.Living, p.PID)
				ranks = append(ranks, r.Rank)
			} else {
				c.Dead = append(c.Dead, p.PID)
			}
		}
		c.Absent = absent(ranks, h.Count)
		counts = append(counts, c)
	}
	return counts
}

// numbered is a rank of one dimension: "TP3", "Worker_TP3".
var numbered = regexp.MustCompile(`^([A-Za-z_]*[A-Za-z])(\d{1,4})$`)

// absent are the ranks of n that are not there; nil if the ranks are not
// numbered in one dimension from 0.
func absent(ranks []string, n int) []string {
	name := ""
	have := map[int]bool{}
	for _, r := range ranks {
		m := numbered.FindStringSubmatch(r)
		if m == nil || name != "" && m[1] != name {
			return nil
		}
		name = m[1]
		k, _ := strconv.Atoi(m[2])
		if k >= n {
			return nil // ranks of another node
		}
		have[k] = true
	}
	if name == "" || n > 4096 {
		return nil
	}
	var list []string
	for k := range n {
		if !have[k] {
			list = append(list, name+strconv.Itoa(k))
		}
	}
	return list
}

// LostPart is a part that wrote to the log and whose process is not there.
type LostPart struct {
	engines.LogPart
	// At is the text of its last known line in the snapshot.
	At   []any
	Line int64
	// Written is the time stamp of the line, nil if it has none.
	Written *time.Time
}

// Since tells whether a line of the log was written in the life of the main
// process: one that was just started may write to the log of its predecessor,
// and have said nothing yet. A line without a time counts as new.
func (f *Facts) Since(written *time.Time) bool {
	return written == nil || f.Engine.Started.IsZero() || written.After(f.Engine.Started.Add(-clockSlack))
}

// clockSlack is for start times, which are exact to a second, and for time
// stamps without fractions.
const clockSlack = 3 * time.Second

// lostParts are the parts that the log names by PID and that do not live any
// more. The log must be this server's: it names the main process, too.
func lostParts(s *evidence.Snapshot, f *Facts) []LostPart {
	if f.Engine.Known == nil || f.Engine.Known.LogPart == nil {
		return nil
	}
	alive := map[int]bool{}
	main := 0
	for i := range s.Processes {
		p := &s.Processes[i]
		if len(p.NSPID) == 0 {
			return nil // who is who is not known
		}
		own := p.NSPID[len(p.NSPID)-1]
		if f.Tree.Alive[p.PID] {
			alive[own] = true
		}
		if p.PID == f.Engine.MainPID {
			main = own
		}
	}
	var lost []LostPart
	ours := false
	for i := range f.Phases.events {
		ev := &f.Phases.events[i]
		part, ok := f.Engine.Known.LogPart(ev.Hit.Text)
		log, _ := ev.At[1].(int)
		switch {
		case !ok, s.Logs[log].LaunchLine == 0: // it may be of a launch before
		case part.NSPID == main:
			ours = true
		case alive[part.NSPID] || part.Role == "api-server":
		default:
			l := LostPart{part, ev.Field("text"), ev.Hit.Line, ev.Hit.At}
			if at := slices.IndexFunc(lost, func(l LostPart) bool { return l.NSPID == part.NSPID }); at >= 0 {
				lost[at] = l // a later line of it, which may name its rank
			} else {
				lost = append(lost, l)
			}
		}
	}
	if !ours {
		return nil
	}
	return lost
}

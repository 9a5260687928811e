package facts

import (
	"maps"
	"sort"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Group is a number of threads that do the same: 5,000 threads become a few
// lines.
type Group struct {
	// Does says what: "wait in futex", "run", "wait in poll".
	Does string
	// State is the state letter, Wchan the kernel function.
	State, Wchan string
	Count        int
	// Still counts those that did not run between the first and the last look
	// at threads; -1 when not known.
	Still int
	// Names are the most common thread names, at most three.
	Names []string
	// PIDs are the processes they belong to.
	PIDs []int
}

// Groups are the threads of the last frame that looked at them, the largest
// group first. It is for reports; rules do not need it.
func Groups(s *evidence.Snapshot) []Group {
	first, last := ThreadLooks(s, 0, len(s.Frames)-1)
	if last < 0 {
		return nil
	}
	before := map[int]*evidence.ThreadFrame{}
	if first != last {
		for j := range s.Frames[first].Processes {
			maps.Copy(before, threadsByTID(&s.Frames[first].Processes[j]))
		}
	}
	type key struct{ does, state, wchan string }
	groups := map[key]*Group{}
	names := map[key]map[string]int{}
	for j := range s.Frames[last].Processes {
		p := &s.Frames[last].Processes[j]
		for k := range p.Threads {
			t := &p.Threads[k]
			id := key{doing(s.Host.Arch, t), t.State, t.Wchan}
			g := groups[id]
			if g == nil {
				g = &Group{Does: id.does, State: t.State, Wchan: t.Wchan}
				groups[id], names[id] = g, map[string]int{}
			}
			g.Count++
			names[id][t.Name]++
			if n := len(g.PIDs); n == 0 || g.PIDs[n-1] != p.PID {
				g.PIDs = append(g.PIDs, p.PID)
			}
			old := before[t.TID]
			switch {
			case old == nil || old.Slices == nil || t.Slices == nil || old.RunNS == nil || t.RunNS == nil:
				g.Still = -1
			case g.Still >= 0 && *old.Slices == *t.Slices && *old.RunNS == *t.RunNS:
				g.Still++
			}
		}
	}
	var list []Group
	for id, g := range groups {
		g.Names = mostCommon(names[id], 3)
		list = append(list, *g)
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].Count != list[j].Count {
			return list[i].Count > list[j].Count
		}
		return list[i].Does+list[i].Wchan+list[i].State < list[j].Does+list[j].Wchan+list[j].State
	})
	return list
}

// doing says in a few words what a thread does.
func doing(arch string, t *evidence.ThreadFrame) string {
	switch t.State {
	case "R":
		return "run or want to run"
	case "T":
		return "stopped by a signal"
	case "t":
		return "stopped by a tracer"
	case "Z", "X":
		return "ended"
	}
	call := CallName(arch, t.Syscall)
	switch call {
	case "":
		if t.Wchan != "" {
			return "sleep in the kernel"
		}
		return "sleep"
	case "running":
		return "were waking up"
	case "no system call":
		return "wait for a page fault"
	}
	return "wait in " + call
}

// mostCommon are the n most frequent names, ties by name.
func mostCommon(count map[string]int, n int) []string {
	var names []string
	for name := range count {
		if strings.TrimSpace(name) != "" {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		if count[names[i]] != count[names[j]] {
			return count[names[i]] > count[names[j]]
		}
		return names[i] < names[j]
	})
	if len(names) > n {
		names = names[:n]
	}
	return names
}

package facts

import "github.com/whyhang/whyhang/probes/evidence"

// Tree finds processes and frames by PID.
type Tree struct {
	// Index is the position in Snapshot.Processes by PID.
	Index map[int]int
	// Alive are the PIDs that still live in the last frame, or at discovery
	// when there is no frame.
	Alive map[int]bool
	// Threads is the number of threads in the last frame that counted them.
	Threads int
	// Readable says whether the descriptors, counters and lock words of every
	// process of the tree could be read.
	Denied []Denial
}

// Denial is something a process did not let us read.
type Denial struct {
	PID    int
	Unread evidence.Unread
}

func treeOf(s *evidence.Snapshot) Tree {
	t := Tree{Index: map[int]int{}, Alive: map[int]bool{}}
	for i := range s.Processes {
		p := &s.Processes[i]
		t.Index[p.PID] = i
		t.Alive[p.PID] = Lives(p.State)
		for _, u := range p.Unread {
			if u.Status == evidence.Denied {
				t.Denied = append(t.Denied, Denial{PID: p.PID, Unread: u})
			}
		}
	}
	// The last look at the processes; one that was interrupted may have none.
	for n := len(s.Frames) - 1; n >= 0 && t.Threads == 0; n-- {
		last := &s.Frames[n]
		for i := range last.Processes {
			p := &last.Processes[i]
			t.Alive[p.PID] = Lives(p.State)
			t.Threads += p.ThreadCount
		}
	}
	return t
}

// Lives tells whether a process in this state can still do something. Stopped
// ones live.
func Lives(state string) bool {
	return state != "" && state != "Z" && state != "X"
}

// ProcessAt is the position of a process in a frame, -1 if it is not there.
func ProcessAt(f *evidence.Frame, pid int) int {
	for i := range f.Processes {
		if f.Processes[i].PID == pid {
			return i
		}
	}
	return -1
}

package facts

import "github.com/whyhang/whyhang/probes/evidence"

// ThreadLooks are the first and the last of the frames from one to another that
// looked at threads; -1 if none did.
func ThreadLooks(s *evidence.Snapshot, from, to int) (first, last int) {
	first, last = -1, -1
	for i := max(0, from); i <= to && i < len(s.Frames); i++ {
		if !hasThreads(&s.Frames[i]) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	return first, last
}

func hasThreads(f *evidence.Frame) bool {
	for j := range f.Processes {
		if len(f.Processes[j].Threads) > 0 {
			return true
		}
	}
	return false
}

// threadsByTID are the threads of a process in one look.
func threadsByTID(p *evidence.ProcessFrame) map[int]*evidence.ThreadFrame {
	by := make(map[int]*evidence.ThreadFrame, len(p.Threads))
	for k := range p.Threads {
		by[p.Threads[k].TID] = &p.Threads[k]
	}
	return by
}

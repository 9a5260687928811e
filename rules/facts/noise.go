package facts

import (
	"math"

	"github.com/whyhang/whyhang/probes/evidence"
)

// What a server that waits does by the way: a thread of it looks at /proc, at a
// configuration or at a meter once a second.
const (
	// pollBytes is the rate below which reading alone, from no storage and with
	// nothing kept in memory, is taken to be such a look.
	pollBytes = 1 << 20
	// pollShare is the share of a processor that such looks stay below.
	pollShare = 0.15
	// swayLooks is the least number of looks that tell memory which comes and goes
	// from memory that grows, and swayPart the part of the growth that must be
	// there without the sway.
	swayLooks = 4
	swayPart  = 0.15
)

// markNoise marks what leads nowhere although it is more than a little.
func (m *Movement) markNoise(s *evidence.Snapshot) {
	for i := range m.Moves {
		switch mv := &m.Moves[i]; mv.Kind {
		case MemoryAnon, MemoryShmem:
			mv.Noise = mv.Delta > 0 && m.sways(s, mv)
		}
	}
	for i := range m.Moves {
		switch mv := &m.Moves[i]; mv.Kind {
		case Faults:
			// Memory that is taken and given back; whoever converts uses a processor.
			mv.Noise = m.idles(mv.PID) && m.comesAndGoes(mv.PID)
		case BytesRead:
			mv.Noise = mv.PerS < pollBytes && m.idles(mv.PID) && m.keepsNothing(mv.PID) && m.notAtStorage(s, mv.PID)
		}
	}
}

// MayBeByTheWay tells kinds of which a short look cannot tell whether they lead
// anywhere.
func MayBeByTheWay(mv *Move) bool {
	switch mv.Kind {
	case MemoryAnon, MemoryShmem, Faults:
		return true
	case BytesRead:
		return mv.PerS < pollBytes
	}
	return false
}

func (m *Movement) idles(pid int) bool { return m.Demand(pid) < pollShare }

// sways tells memory that comes and goes from memory that grows: neither did
// the last look find clearly more than the first half of the window ever had,
// nor did the least of the second half rise over the least of the first.
func (m *Movement) sways(s *evidence.Snapshot, mv *Move) bool {
	if m.Last-m.First+1 < swayLooks {
		return false
	}
	middle := s.Frames[m.First].SinceMS + m.WindowMS/2
	highest, least, then := 0.0, math.Inf(1), math.Inf(1)
	for n := m.First; n <= m.Last; n++ {
		j := ProcessAt(&s.Frames[n], mv.PID)
		if j < 0 {
			continue
		}
		p := &s.Frames[n].Processes[j]
		v := p.RSSAnonBytes
		if mv.Kind == MemoryShmem {
			v = p.RSSShmemBytes
		}
		switch {
		case v == nil:
		case s.Frames[n].SinceMS <= middle:
			highest, least = max(highest, float64(*v)), min(least, float64(*v))
		default:
			then = min(then, float64(*v))
		}
	}
	return max(mv.Value-highest, then-least) < swayPart*mv.Delta
}

// comesAndGoes: the private memory of the process is no more than it was.
func (m *Movement) comesAndGoes(pid int) bool {
	for i := range m.Moves {
		if mv := &m.Moves[i]; mv.PID == pid && mv.Delta > 0 && LeadsTowards(mv) {
			switch mv.Kind {
			case MemoryAnon, MemoryShmem, MemoryFile, DiskRead:
				return false
			}
		}
	}
	return true
}

// keepsNothing: what the process read came from no storage, and is not in its
// memory.
func (m *Movement) keepsNothing(pid int) bool {
	return m.comesAndGoes(pid) && m.Delta(DiskRead, pid) == 0
}

// notAtStorage: no look found the process waiting for a file system, and some
// look would have.
func (m *Movement) notAtStorage(s *evidence.Snapshot, pid int) bool {
	looked := false
	for n := m.First; n <= m.Last; n++ {
		looked = looked || s.Frames[n].StorageLooked
		for k := range s.Frames[n].Storage {
			if s.Frames[n].Storage[k].PID == pid {
				return false
			}
		}
	}
	return looked
}

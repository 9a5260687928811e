package facts

import "fmt"

// towards are the kinds of movement that lead towards an end, with the least
// change per second that counts: below it is the noise of timers and logging.
// Processor time and thread runs are not among them: a spinner has both.
var towards = map[Kind]float64{
	MemoryAnon:  256 << 10,
	MemoryFile:  128 << 10,
	MemoryShmem: 256 << 10,
	BytesRead:   64 << 10,
	DiskRead:    64 << 10,
	GPUMemory:   1 << 20,
	LogContent:  0.01,
	Births:      0.01,
	CPUChildren: 50,
	Faults:      100,
	BuildCache:  0.01,
	Downloaded:  1 << 10,
}

// strengthOf orders the kinds by how much they say of an end coming nearer.
var strengthOf = map[Kind]int{
	LogContent: 9, Downloaded: 9, BuildCache: 8, GPUMemory: 8, DiskRead: 7, BytesRead: 6, MemoryFile: 5, MemoryShmem: 4, MemoryAnon: 3, CPUChildren: 2, Births: 2, Faults: 1,
}

// LeadsTowards tells whether a movement leads towards an end, and is more than
// noise.
func LeadsTowards(m *Move) bool {
	least, counts := towards[m.Kind]
	return counts && m.PerS >= least && !m.Noise
}

// Furthest is the movement towards an end that says the most; nil if nothing
// moved towards one.
func Furthest(m *Movement) *Move {
	var best *Move
	for i := range m.Moves {
		mv := &m.Moves[i]
		if !LeadsTowards(mv) {
			continue
		}
		if best == nil || strengthOf[mv.Kind] > strengthOf[best.Kind] ||
			strengthOf[mv.Kind] == strengthOf[best.Kind] && mv.Delta > best.Delta {
			best = mv
		}
	}
	return best
}

// FurthestOf is Furthest among the moves of one process.
func FurthestOf(m *Movement, pid int) *Move {
	own := Movement{}
	for i := range m.Moves {
		if m.Moves[i].PID == pid {
			own.Moves = append(own.Moves, m.Moves[i])
		}
	}
	return Furthest(&own)
}

// worksShare is the share of a processor above which a tree is at work, whatever
// for: timers and pollers stay below.
const worksShare = 0.05

// Works tells whether the tree used the processor.
func Works(m *Movement) bool {
	return (m.Rate(CPUUser)+m.Rate(CPUSystem))/1000 >= worksShare
}

// MoveSays is a move in words, with its rate.
func MoveSays(m *Move) string {
	who := ""
	if m.PID != 0 {
		who = fmt.Sprintf(" of process %d", m.PID)
	}
	switch m.Kind {
	case BuildCache:
		return Bytes(m.Delta) + " came into the compile cache"
	case MemoryAnon, MemoryFile, MemoryShmem, BytesRead, DiskRead, BytesOut, SocketQueue, GPUMemory, Downloaded, PageCache:
		sign := "+"
		if m.Delta < 0 {
			sign = ""
		}
		return fmt.Sprintf("%s%s %s%s/s", m.Kind, who, sign, Bytes(m.PerS))
	case CPUUser, CPUSystem, CPUChildren:
		return fmt.Sprintf("%s%s %.0f %% of one processor", m.Kind, who, m.PerS/10)
	case LogContent:
		if m.Delta == 1 {
			return "1 new line in the log"
		}
		return fmt.Sprintf("%.0f new lines in the log", m.Delta)
	case Births:
		return fmt.Sprintf("process %d is new", m.PID)
	}
	return fmt.Sprintf("%s%s +%.0f/s", m.Kind, who, m.PerS)
}

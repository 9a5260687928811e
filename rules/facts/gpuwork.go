package facts

import "github.com/whyhang/whyhang/probes/evidence"

// GPUDoes is what a GPU does, by the figures that mean something together.
type GPUDoes string

// What a GPU can be seen doing. Utilisation alone says that a kernel is
// resident, not that it works: a kernel that waits for another GPU, or that
// never ends, shows 100 % as well (NVML, nvmlDeviceGetUtilizationRates).
const (
	GPUIdle    GPUDoes = "idle"
	GPUSpins   GPUDoes = "spins" // a kernel is resident all the time, and neither power nor memory show work
	GPUWorks   GPUDoes = "works"
	GPUUnclear GPUDoes = "unclear"
)

// The thresholds, as shares of the card's own limits. Idle cards draw 3 to 15 %
// of their power limit and a spinning kernel little more; decoding draws half
// and a prefill most of it. In between nothing is said.
const (
	spinUtil     = 90 // percent, at least
	spinMemory   = 2  // percent of memory traffic, at most
	SpinPower    = 30 // percent of the power limit, at most
	worksPower   = 45 // percent of the power limit, at least
	worksMemory  = 10 // percent of memory traffic, at least
	idleUtil     = 5  // percent, at most
	gpuWatchedMS = 1000
)

// GPUState is one GPU of the tree over a window.
type GPUState struct {
	Index int
	Does  GPUDoes
	// UtilPercent, MemoryPercent and PowerPercent are the highest of the window,
	// UtilLowest the lowest utilisation. PowerPercent is of the card's limit.
	UtilPercent, UtilLowest, MemoryPercent int
	PowerPercent                           float64
	// UsedBytes is the memory in use at its end; Flat: it did not change.
	UsedBytes uint64
	Flat      bool
	// Frame and Position are where its last figures stand: /frames/Frame/gpus/Position.
	Frame, Position int
}

// GPUStates are the tree's GPUs over the frames of a movement: those on which
// the driver names one of its processes or, where it names none at all, as in a
// container, those with memory in use. Empty: not known.
func GPUStates(s *evidence.Snapshot, m *Movement) []GPUState {
	if !m.Looked || s.GPU == nil || m.WindowMS < gpuWatchedMS {
		return nil
	}
	named := false
	for i := range s.Frames[m.Last].GPUs {
		named = named || inTree(&s.Frames[m.Last].GPUs[i])
	}
	var states []GPUState
	for i := range s.Frames[m.Last].GPUs {
		last := &s.Frames[m.Last].GPUs[i]
		if named && !inTree(last) || !named && (len(last.Processes) > 0 || last.MemoryUsedBytes == nil || *last.MemoryUsedBytes < 200<<20) {
			continue
		}
		if st, ok := gpuState(s, m, last); ok {
			st.Position = i
			states = append(states, st)
		}
	}
	return states
}

func inTree(g *evidence.GPUFrame) bool {
	for _, p := range g.Processes {
		if p.InTree {
			return true
		}
	}
	return false
}

// gpuState sums one GPU up; false if it was seen fewer than two times.
func gpuState(s *evidence.Snapshot, m *Movement, last *evidence.GPUFrame) (GPUState, bool) {
	st := GPUState{Index: last.Index, UtilLowest: 100, Frame: m.Last, Does: GPUUnclear, Flat: true}
	limit := powerLimit(s, last.Index)
	seen, complete := 0, true
	for n := m.First; n <= m.Last; n++ {
		for i := range s.Frames[n].GPUs {
			g := &s.Frames[n].GPUs[i]
			if g.Index != last.Index {
				continue
			}
			if g.UtilPercent == nil || g.MemoryUtilPercent == nil || g.PowerW == nil || limit <= 0 {
				complete = false
				continue
			}
			seen++
			st.UtilPercent, st.UtilLowest = max(st.UtilPercent, *g.UtilPercent), min(st.UtilLowest, *g.UtilPercent)
			st.MemoryPercent = max(st.MemoryPercent, *g.MemoryUtilPercent)
			st.PowerPercent = max(st.PowerPercent, 100**g.PowerW/limit)
			if g.MemoryUsedBytes == nil || st.UsedBytes != 0 && *g.MemoryUsedBytes != st.UsedBytes {
				st.Flat = false
			}
			if g.MemoryUsedBytes != nil {
				st.UsedBytes = *g.MemoryUsedBytes
			}
		}
	}
	if seen < 2 {
		return st, false
	}
	switch {
	case st.UtilPercent <= idleUtil:
		st.Does = GPUIdle
	case st.MemoryPercent >= worksMemory || st.PowerPercent >= worksPower:
		st.Does = GPUWorks
	case complete && st.UtilLowest >= spinUtil && st.MemoryPercent <= spinMemory && st.PowerPercent <= SpinPower:
		st.Does = GPUSpins
	}
	return st, true
}

func powerLimit(s *evidence.Snapshot, index int) float64 {
	for _, d := range s.GPU.Devices {
		if d.Index == index && d.PowerLimitW != nil {
			return *d.PowerLimitW
		}
	}
	return 0
}

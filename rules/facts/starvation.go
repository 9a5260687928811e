package facts

import "slices"

// Gets is the share of the processor time that the tree wants and gets, 1 if
// nobody waits.
func (l *Limits) Gets() float64 {
	if l.Ran+l.Waited <= 0 {
		return 1
	}
	return l.Ran / (l.Ran + l.Waited)
}

// FurthestAtPace is Furthest for a tree that gets only a share of what it
// wants: what it would move on a machine of its own counts. Kinds in but do not
// count at all.
func FurthestAtPace(m *Movement, share float64, but ...Kind) *Move {
	var scaled Movement
	for _, mv := range m.Moves {
		if !slices.Contains(but, mv.Kind) {
			mv.PerS /= max(share, 0.001)
			scaled.Moves = append(scaled.Moves, mv)
		}
	}
	best := Furthest(&scaled)
	if best != nil {
		best.PerS *= max(share, 0.001)
	}
	return best
}

// The bounds of starvation. A tree that gets less than little of what it wants
// is held up, one below tiny hardly runs. A group is held back if its quota was
// used up in most of its periods.
const (
	littleShare     = 0.5
	tinyShare       = 0.2
	heldBackShare   = 0.5
	leastWaited     = 0.5 // processors: a timer that waits is nobody's harm
	crowdedPressure = 0.3 // see Limits
	stalledMemory   = 0.2
	swapInPerS      = 100 // pages
	majorPerS       = 50
)

// HeldBack: a quota keeps the tree from what it wants.
func (l *Limits) HeldBack() bool {
	return l.Throttled != nil && l.Throttled.Share >= heldBackShare && l.Waited >= leastWaited/2 && l.Gets() <= littleShare
}

// Crowded: others use the processors that the tree wants.
func (l *Limits) Crowded() bool {
	return !l.HeldBack() && l.Waited >= leastWaited && l.Gets() <= littleShare/2 && l.CPUPressure != nil && l.CPUPressure.Share >= crowdedPressure
}

// HardlyRuns: the tree gets next to nothing of the processor time it wants.
func (l *Limits) HardlyRuns() bool { return l.Gets() <= tinyShare }

// Thrashes: everybody waits for memory to come back from the disk.
func (l *Limits) Thrashes() bool {
	return l.MemoryPressure != nil && l.MemoryPressure.Share >= stalledMemory && (l.SwapInPerS >= swapInPerS || l.MajorFaultsPerS >= majorPerS)
}

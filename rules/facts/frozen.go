package facts

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// FrozenAt is the group that freezes a process in a frame: the nearest one that
// was told to freeze itself, or, where that one is not visible, the process's
// own. Frame is the index into the groups of the frame.
func FrozenAt(s *evidence.Snapshot, n, pid int) (frame int, state evidence.Freezer) {
	k := s.Frames[n].Kernel
	if k == nil || s.Kernel == nil {
		return -1, ""
	}
	best, own := -1, -1
	longest := func(now, candidate int) bool {
		return now < 0 || len(GroupOf(s, &k.Cgroups[candidate]).Dir) > len(GroupOf(s, &k.Cgroups[now]).Dir)
	}
	for j := range k.Cgroups {
		g := &k.Cgroups[j]
		group := GroupOf(s, g)
		if g.Freezer != evidence.Frozen && g.Freezer != evidence.Freezing || group == nil || !slices.Contains(group.PIDs, pid) {
			continue
		}
		if longest(own, j) {
			own = j
		}
		if g.FreezeSelf != nil && *g.FreezeSelf && longest(best, j) {
			best = j
		}
	}
	switch {
	case own < 0:
		return -1, ""
	case best < 0:
		best = own
	}
	return best, k.Cgroups[own].Freezer
}

package process

import (
	"fmt"
	"maps"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// looksOnlyAmongSleepers answers waits at pipes and sockets from the descriptors
// of the sleeping processes alone, where that is enough: nobody is stuck at a
// pipe if its other end belongs to none of them, so that somebody else has it, or
// to one with a thread awake. A look at the descriptors of all processes of the
// machine then changes nothing, and costs more than all else. It says whether
// it answered; if one wait may be a deadlock, none is answered.
func (s *descriptorScan) looksOnlyAmongSleepers(waits []blockedWait, asleep map[int]bool) bool {
	if len(s.names)+len(s.inodes) > 0 {
		return false // FIFOs and locks have other ways to their holders
	}
	near := newDescriptorScan(s.r, s.deadline)
	near.links = s.links
	near.processes(slices.Sorted(maps.Keys(asleep)))
	var answered []blockedWait
	for i := range waits {
		w := waits[i]
		w.gaps, w.doubts, w.b.Wakers = slices.Clone(w.gaps), slices.Clone(w.doubts), nil
		switch w.b.Kind {
		case evidence.BlockPipeRead, evidence.BlockPipeWrite:
			near.pipeWakers(&w)
		case evidence.BlockSocketRead, evidence.BlockSocketWrite:
			near.socketWakers(&w)
		default:
			answered = append(answered, waits[i])
			continue
		}
		// The end of a socket that is waited at counts as well: it is the
		// sleeper's own.
		if w.peer == 0 && len(w.b.Wakers) > 0 || w.peer != 0 && slices.ContainsFunc(w.b.Wakers, func(k evidence.Waker) bool { return k.FD != nil }) {
			return false
		}
		w = waits[i]
		w.gaps = slices.Clone(w.gaps)
		w.unsure(fmt.Sprintf("no process that sleeps as a whole holds the other end of %s; who does was not looked for", w.b.Object))
		answered = append(answered, w)
	}
	copy(waits, answered)
	return true
}

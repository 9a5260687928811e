package facts

import (
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Nap is a thread that sleeps for a moment again and again: it was found in
// the call that sleeps, or awake in one of the two looks, and woke in between.
type Nap struct {
	PID, TID int
	// PerS is how often it woke in a second.
	PerS float64
	// InWaiter: by Python's stack it is in the library that waits for a lock file.
	InWaiter bool
	// InPython: Python's stack of the thread is known.
	InPython bool
	// Frame is the last frame that looked at it, Process and Thread its places
	// there.
	Frame, Process, Thread int
}

// leastNapMS is the shortest time between two looks that gives a rate.
const leastNapMS = 900

// napsOf compares the first and the last look at threads.
func napsOf(s *evidence.Snapshot) []Nap {
	asked := slices.IndexFunc(s.Frames, func(f evidence.Frame) bool { return f.During != "" })
	if asked < 0 {
		asked = len(s.Frames)
	}
	first, last := ThreadLooks(s, 0, asked-1)
	if first < 0 || s.Frames[last].SinceMS-s.Frames[first].SinceMS < leastNapMS {
		return nil
	}
	seconds := (s.Frames[last].SinceMS - s.Frames[first].SinceMS) / 1000
	var naps []Nap
	for j := range s.Frames[last].Processes {
		p := &s.Frames[last].Processes[j]
		i := ProcessAt(&s.Frames[first], p.PID)
		if i < 0 {
			continue
		}
		before := threadsByTID(&s.Frames[first].Processes[i])
		for k := range p.Threads {
			t := &p.Threads[k]
			old := before[t.TID]
			if old == nil || old.Slices == nil || t.Slices == nil || *t.Slices <= *old.Slices || !napping(s.Host.Arch, old, t) {
				continue
			}
			naps = append(naps, Nap{PID: p.PID, TID: t.TID, PerS: float64(*t.Slices-*old.Slices) / seconds, Frame: last, Process: j, Thread: k})
		}
	}
	return naps
}

// napping: asleep in one look, and asleep or awake in the other; but not
// waiting for something else.
func napping(arch string, a, b *evidence.ThreadFrame) bool {
	switch {
	case sleeps(arch, a):
		return sleeps(arch, b) || b.State == "R"
	case a.State == "R":
		return sleeps(arch, b)
	}
	return false
}

// sleeps tells whether a thread is in a sleep that only time ends.
func sleeps(arch string, t *evidence.ThreadFrame) bool {
	switch CallName(arch, t.Syscall) {
	case "nanosleep", "clock_nanosleep":
		return true
	case "select", "pselect6":
		// Python before 3.11 sleeps in a select of no descriptors.
		words := strings.Fields(t.Syscall)
		return len(words) > 1 && words[1] == "0x0"
	}
	return t.Wchan == "hrtimer_nanosleep"
}

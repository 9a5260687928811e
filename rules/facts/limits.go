package facts

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Limits is what the machine's limits did to the tree during the window.
type Limits struct {
	// Ran and Waited are what the threads of the tree ran, and waited for a
	// processor, in processors: 0.05 and 0.95 is one thread that wants a whole
	// one. Zero both: nobody wanted to run, or not known.
	Ran, Waited float64
	// Throttled is the group whose quota held the tree back in most periods; nil
	// if none did.
	Throttled *Throttled
	// CPUPressure and MemoryPressure are the share of the window in which some
	// tasks of the machine waited for a processor, and in which all tasks that
	// had work (of the tree's group, else of the machine) stood still for want of
	// memory. Nil: not known. The kernel adds up every 2 s (PSI_FREQ,
	// kernel/sched/psi.c), so that a window of 6 s may miss a third of it, and a
	// short one hold too much.
	CPUPressure    *Share
	MemoryPressure *Share
	// SwapInPerS is pages a second, MajorFaultsPerS those of the tree.
	SwapInPerS, MajorFaultsPerS float64
	SwapInAt                    []any
}

// Share is a part of the window, 0 to 1, and where its counter stands.
type Share struct {
	Share float64
	At    []any
}

// Throttled is a group that used its quota up.
type Throttled struct {
	// Group and Frame are indexes into Kernel.Cgroups and into the groups of the
	// last frame.
	Group, Frame int
	// Periods in which it wanted to run, and the share of those in which it was
	// held back.
	Periods float64
	Share   float64
	// QuotaCPUs is what it may use, in processors; 0 if not known.
	QuotaCPUs float64
	At        []any
}

// leastPeriods is the number of periods (100 ms each by default) from which a
// share of them says anything.
const leastPeriods = 5

func limitsOf(s *evidence.Snapshot, m *Movement) Limits {
	l := Limits{Ran: m.ran, Waited: m.waited}
	if !m.Looked || s.Kernel == nil {
		return l
	}
	a, b := m.First, m.Last
	for a < b && s.Frames[a].Kernel == nil {
		a++
	}
	for b > a && s.Frames[b].Kernel == nil {
		b--
	}
	windowUS := (s.Frames[b].SinceMS - s.Frames[a].SinceMS) * 1000
	if a >= b || windowUS <= 0 {
		return l
	}
	from, to := s.Frames[a].Kernel, s.Frames[b].Kernel
	at := func(path ...any) []any { return append([]any{"frames", b, "kernel"}, path...) }
	if from.Pressure != nil && to.Pressure != nil {
		l.CPUPressure = stalled(from.Pressure.CPU, to.Pressure.CPU, false, windowUS, at("pressure", "cpu", "some_us"))
		l.MemoryPressure = stalled(from.Pressure.Memory, to.Pressure.Memory, true, windowUS, at("pressure", "memory", "full_us"))
	}
	if from.SwapInPages != nil && to.SwapInPages != nil && *to.SwapInPages > *from.SwapInPages {
		l.SwapInPerS, l.SwapInAt = float64(*to.SwapInPages-*from.SwapInPages)/windowUS*1e6, at("swap_in_pages")
	}
	l.MajorFaultsPerS = majorFaults(&s.Frames[a], &s.Frames[b]) / windowUS * 1e6
	for j := range to.Cgroups {
		g := &to.Cgroups[j]
		i := slices.IndexFunc(from.Cgroups, func(f evidence.CgroupFrame) bool { return f.Cgroup == g.Cgroup })
		if i < 0 || GroupOf(s, g) == nil {
			continue
		}
		l.throttled(&from.Cgroups[i], g, j, at("cgroups", j, "throttled"))
		if f := &from.Cgroups[i]; f.Pressure != nil && g.Pressure != nil && slices.Contains(GroupOf(s, g).PIDs, s.Target.PID) {
			own := stalled(f.Pressure.Memory, g.Pressure.Memory, true, windowUS, at("cgroups", j, "pressure", "memory", "full_us"))
			if own != nil && (l.MemoryPressure == nil || own.Share > l.MemoryPressure.Share) {
				l.MemoryPressure = own
			}
		}
	}
	return l
}

// GroupOf is the group that a frame is about; nil if the snapshot has none.
func GroupOf(s *evidence.Snapshot, f *evidence.CgroupFrame) *evidence.Cgroup {
	if s.Kernel == nil || f.Cgroup < 0 || f.Cgroup >= len(s.Kernel.Cgroups) {
		return nil
	}
	return &s.Kernel.Cgroups[f.Cgroup]
}

// throttled keeps the group that was held back most.
func (l *Limits) throttled(from, to *evidence.CgroupFrame, frame int, at []any) {
	if from.Periods == nil || to.Periods == nil || from.Throttled == nil || to.Throttled == nil ||
		*to.Periods < *from.Periods+leastPeriods || *to.Throttled < *from.Throttled {
		return
	}
	t := Throttled{Group: to.Cgroup, Frame: frame, Periods: float64(*to.Periods - *from.Periods), At: at}
	t.Share = min(1, float64(*to.Throttled-*from.Throttled)/t.Periods)
	if to.QuotaUS != nil && to.PeriodUS != nil && *to.PeriodUS > 0 {
		t.QuotaCPUs = float64(*to.QuotaUS) / float64(*to.PeriodUS)
	}
	if t.Share > 0 && (l.Throttled == nil || t.Share > l.Throttled.Share) {
		l.Throttled = &t
	}
}

// stalled is the share of the window that a counter of stalls grew by.
func stalled(from, to *evidence.Stall, full bool, windowUS float64, at []any) *Share {
	if from == nil || to == nil {
		return nil
	}
	a, b := from.SomeUS, to.SomeUS
	if full {
		if from.FullUS == nil || to.FullUS == nil {
			return nil
		}
		a, b = *from.FullUS, *to.FullUS
	}
	if b < a {
		return nil
	}
	return &Share{Share: min(1, float64(b-a)/windowUS), At: at}
}

func majorFaults(from, to *evidence.Frame) float64 {
	var n float64
	for j := range to.Processes {
		if i := ProcessAt(from, to.Processes[j].PID); i >= 0 && to.Processes[j].MajorFaults > from.Processes[i].MajorFaults {
			n += float64(to.Processes[j].MajorFaults - from.Processes[i].MajorFaults)
		}
	}
	return n
}

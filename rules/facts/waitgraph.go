package facts

import (
	"sort"

	"github.com/whyhang/whyhang/probes/evidence"
)

// WaitKind says what a thread waits for.
type WaitKind string

// The kinds of edges of the wait graph.
const (
	WaitMutex WaitKind = "mutex"
	WaitJoin  WaitKind = "thread to end"
)

// Edge says that a thread waits, without a time-out, for one other thread.
type Edge struct {
	PID, TID int
	Kind     WaitKind
	// Addr is the lock's address; "" for a join.
	Addr string
	// For is the only thread that can end the wait.
	ForPID, ForTID int
	// Code: a return address on the thread's stack lies in the function that
	// takes such locks, so the memory really is one. Without it the edge rests
	// on the memory's layout alone.
	Code bool
	// Look and Wait are the indexes into Snapshot.Waits.
	Look, Wait int
}

// WaitGraph is who waits for whom, from readings that hold together: see
// evidence.WaitLook.
type WaitGraph struct {
	// Looks is how many readings there are; the graph is that of the last one,
	// restricted to edges that were the same in the one before.
	Looks int
	// SpanMS is the time between those two readings.
	SpanMS float64
	Edges  map[int]Edge // by waiting TID
	// Cycles are the closed circles, each in waiting order, the lowest TID
	// first.
	Cycles [][]int
	// Unread counts futex waits whose memory could not be read.
	Unread int
	// Unclocked: the kernel gives no schedstat, so that nothing proves that a
	// thread did not run between two looks.
	Unclocked bool
}

func waitGraphOf(s *evidence.Snapshot) WaitGraph {
	g := WaitGraph{Looks: len(s.Waits), Edges: map[int]Edge{}}
	if len(s.Waits) == 0 {
		return g
	}
	last := len(s.Waits) - 1
	g.Edges = edgesOf(s, last, &g)
	if last > 0 {
		g.SpanMS = float64(s.Waits[last].At.Sub(s.Waits[last-1].At).Microseconds()) / 1000
		keepConfirmed(s, g.Edges, last-1)
	}
	g.Cycles = cyclesOf(g.Edges)
	return g
}

// edgesOf reads the edges of one look: only those of threads that did not run
// while the words were read.
func edgesOf(s *evidence.Snapshot, look int, g *WaitGraph) map[int]Edge {
	edges := map[int]Edge{}
	for i := range s.Waits[look].Waits {
		w := &s.Waits[look].Waits[i]
		f := w.Futex
		if f == nil || f.Timed {
			continue
		}
		if f.Unread != "" {
			g.Unread++
			continue
		}
		slept, clocked := SleptThrough(w.A, w.B)
		if !clocked {
			g.Unclocked = true
		}
		if !slept {
			continue
		}
		e := Edge{PID: w.PID, TID: w.TID, Look: look, Wait: i}
		switch {
		case f.Owner != nil && f.Owner.TID != 0 && f.Owner.Kind == evidence.KindThread && f.Owner.TID != w.TID:
			e.Kind = WaitJoin
			e.ForPID, e.ForTID = f.Owner.PID, f.Owner.TID
			e.Code = f.Owner.Proof != evidence.ProofLayout
		case f.Owner != nil && f.Owner.TID != 0:
			e.Kind, e.Addr = WaitMutex, f.Addr
			e.ForPID, e.ForTID = f.Owner.PID, f.Owner.TID
			e.Code = f.Owner.Proof != evidence.ProofLayout
		default:
			continue
		}
		edges[w.TID] = e
	}
	return edges
}

// SleptThrough tells whether a thread was asleep in the same call from look a
// to look b; clocked is false where the kernel gives no schedstat to prove it.
func SleptThrough(a, b evidence.ThreadLook) (slept, clocked bool) {
	if a.State != "S" || b.State != "S" || a.Syscall == "" || a.Syscall != b.Syscall {
		return false, true
	}
	if a.RunNS == nil || b.RunNS == nil || a.Slices == nil || b.Slices == nil {
		return true, false
	}
	return *a.RunNS == *b.RunNS && *a.Slices == *b.Slices, true
}

// keepConfirmed drops the edges that an earlier look does not show in the very
// same wait: a thread that ran in between may have come round to the same
// picture.
func keepConfirmed(s *evidence.Snapshot, edges map[int]Edge, look int) {
	before := map[int]*evidence.Wait{}
	for i := range s.Waits[look].Waits {
		w := &s.Waits[look].Waits[i]
		before[w.TID] = w
	}
	for tid, e := range edges {
		now := &s.Waits[e.Look].Waits[e.Wait]
		old := before[tid]
		if old == nil || old.PID != now.PID {
			delete(edges, tid)
			continue
		}
		if slept, _ := SleptThrough(old.A, now.B); !slept {
			delete(edges, tid)
		}
	}
}

// cyclesOf finds the circles. Every thread has at most one edge, so following
// it from each thread once finds them all in linear time.
func cyclesOf(edges map[int]Edge) [][]int {
	const (
		unseen = iota
		onPath
		done
	)
	state := map[int]int{}
	var cycles [][]int
	for start := range edges {
		var path []int
		tid := start
		for state[tid] == unseen {
			e, waits := edges[tid]
			if !waits {
				break
			}
			state[tid] = onPath
			path = append(path, tid)
			tid = e.ForTID
		}
		if state[tid] == onPath {
			for i, t := range path {
				if t == tid {
					cycles = append(cycles, lowestFirst(path[i:]))
					break
				}
			}
		}
		for _, t := range path {
			state[t] = done
		}
	}
	sort.Slice(cycles, func(i, j int) bool { return cycles[i][0] < cycles[j][0] })
	return cycles
}

func lowestFirst(c []int) []int {
	low := 0
	for i := range c {
		if c[i] < c[low] {
			low = i
		}
	}
	return append(append([]int(nil), c[low:]...), c[:low]...)
}

// Behind are the threads outside a cycle whose wait ends in it.
func (g *WaitGraph) Behind(cycle []int) []int {
	in := map[int]bool{}
	for _, t := range cycle {
		in[t] = true
	}
	ends := map[int]bool{} // memo of threads already followed
	var follow func(tid, steps int) bool
	follow = func(tid, steps int) bool {
		if in[tid] {
			return true
		}
		if known, ok := ends[tid]; ok {
			return known
		}
		e, waits := g.Edges[tid]
		if !waits || steps > len(g.Edges) {
			return false
		}
		ends[tid] = false // a circle elsewhere ends here
		ends[tid] = follow(e.ForTID, steps+1)
		return ends[tid]
	}
	var behind []int
	for tid := range g.Edges {
		if !in[tid] && follow(tid, 0) {
			behind = append(behind, tid)
		}
	}
	sort.Ints(behind)
	return behind
}

package facts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// asleep is a wait of a thread that slept through the look.
func asleepIn(pid, tid int) evidence.Wait {
	l := evidence.ThreadLook{State: "S", Syscall: fmt.Sprintf("1 0x%x 0x1 0x2", tid), RunNS: u64(uint64(tid)), Slices: u64(3)}
	return evidence.Wait{PID: pid, TID: tid, A: l, B: l}
}

func waitsForOwner(pid, tid int, o evidence.LockOwner) evidence.Wait {
	w := asleepIn(pid, tid)
	w.Futex = &evidence.Futex{Call: "futex", Addr: "0x10", Private: true, Local: true, Owner: &o}
	return w
}

func waitsForAnyone(pid, tid int) evidence.Wait {
	w := asleepIn(pid, tid)
	w.Futex = &evidence.Futex{Call: "futex", Addr: "0x20", Private: true, Local: true}
	return w
}

func waitsForProcess(pid, tid int, kind evidence.BlockKind, pids ...int) evidence.Wait {
	w := asleepIn(pid, tid)
	w.Blocked = &evidence.Blocked{Kind: kind, FD: 3, Object: "pipe:[1]"}
	for _, p := range pids {
		w.Blocked.Wakers = append(w.Blocked.Wakers, evidence.Waker{PID: p})
	}
	return w
}

func owner(tid int) evidence.LockOwner {
	return evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x10", NSTID: tid, TID: tid, PID: tid / 100 * 100, Proof: evidence.ProofCode}
}

// graphOf reads the same waits twice; extra are threads that are in no wait,
// by process.
func graphOf(waits []evidence.Wait, extra map[int]int) WaitGraph {
	s := looks(waits, waits)
	threads := maps.Clone(extra)
	if threads == nil {
		threads = map[int]int{}
	}
	for _, w := range waits {
		threads[w.PID]++
	}
	for i := range s.Waits {
		for pid, n := range threads {
			s.Waits[i].Processes = append(s.Waits[i].Processes, evidence.WaitProcess{PID: pid, Threads: n, ThreadsAfter: n})
		}
	}
	return waitGraphOf(s)
}

func TestClosedSets(t *testing.T) {
	inferred := func(w evidence.Wait, tid int) evidence.Wait {
		w.Futex.Owner, w.Futex.Python = nil, &evidence.PythonLock{Kind: evidence.PythonMutex, Object: "0x30", Inside: []int{tid}}
		return w
	}
	lookalike := func(tid int) evidence.LockOwner {
		o := owner(tid)
		o.Proof = evidence.ProofLayout
		return o
	}
	ended := evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x10", NSTID: 77, Proof: evidence.ProofCode, Ended: true}
	for _, tc := range []struct {
		name    string
		waits   []evidence.Wait
		extra   map[int]int
		circles [3][][]int
		orphans [][]int
		closed  []int
	}{
		{name: "a pool that waits for work, and a thread in poll",
			waits: []evidence.Wait{waitsForAnyone(100, 101), waitsForAnyone(100, 102)}, extra: map[int]int{100: 1}},
		{name: "a pool that nobody can wake",
			waits: []evidence.Wait{waitsForAnyone(100, 101), waitsForAnyone(100, 102)}, closed: []int{100}},
		{name: "two crossed locks beside a living pool",
			waits: []evidence.Wait{waitsForOwner(100, 101, owner(102)), waitsForOwner(100, 102, owner(101)), waitsForAnyone(100, 103)}, extra: map[int]int{100: 1},
			circles: [3][][]int{{{101, 102}}}},
		{name: "a lock held by one that waits for the outside",
			waits: []evidence.Wait{waitsForOwner(100, 101, owner(105))}, extra: map[int]int{100: 1}},
		{name: "a lock held by one whose pool cannot be woken",
			waits: []evidence.Wait{waitsForOwner(100, 101, owner(102)), waitsForAnyone(100, 102)}, closed: []int{100}},
		{name: "a lock whose owner has ended",
			waits: []evidence.Wait{waitsForOwner(100, 101, ended), waitsForOwner(100, 102, ended)}, extra: map[int]int{100: 1},
			orphans: [][]int{{101, 102}}},
		{name: "a parent waits for its child, the child for the parent to read; a pool of the parent sleeps",
			waits: []evidence.Wait{waitsForProcess(100, 101, evidence.BlockChild, 200), waitsForAnyone(100, 102),
				waitsForProcess(200, 201, evidence.BlockPipeWrite, 100)},
			circles: [3][][]int{{{101, 201}}}, closed: []int{100, 200}},
		{name: "the same, but one thread of the parent is in poll",
			waits: []evidence.Wait{waitsForProcess(100, 101, evidence.BlockChild, 200), waitsForAnyone(100, 102),
				waitsForProcess(200, 201, evidence.BlockPipeWrite, 100)}, extra: map[int]int{100: 1}},
		{name: "a pipe whose other end a process holds that was not looked at",
			waits: []evidence.Wait{waitsForProcess(100, 101, evidence.BlockPipeRead, 100, 900)}},
		{name: "a pipe whose other end nobody holds but the reader itself",
			waits:   []evidence.Wait{waitsForProcess(100, 101, evidence.BlockPipeRead, 100)},
			circles: [3][][]int{{{101}}}, closed: []int{100}},
		{name: "three processes in a ring of pipes",
			waits: []evidence.Wait{waitsForProcess(100, 101, evidence.BlockPipeRead, 200), waitsForProcess(200, 201, evidence.BlockPipeRead, 300),
				waitsForProcess(300, 301, evidence.BlockPipeRead, 100)},
			circles: [3][][]int{{{101, 201, 301}}}, closed: []int{100, 200, 300}},
		{name: "Python locks, of which only the with blocks tell the holder",
			waits: []evidence.Wait{inferred(waitsForOwner(100, 101, owner(102)), 102), inferred(waitsForOwner(100, 102, owner(101)), 101)}, extra: map[int]int{100: 1},
			circles: [3][][]int{nil, {{101, 102}}}},
		{name: "memory that looks like locks",
			waits: []evidence.Wait{waitsForOwner(100, 101, lookalike(102)), waitsForOwner(100, 102, lookalike(101))}, extra: map[int]int{100: 1},
			circles: [3][][]int{nil, nil, {{101, 102}}}},
		{name: "two circles in two processes",
			waits: []evidence.Wait{waitsForOwner(100, 101, owner(102)), waitsForOwner(100, 102, owner(101)),
				waitsForOwner(200, 201, owner(202)), waitsForOwner(200, 202, owner(203)), waitsForOwner(200, 203, owner(201))}, extra: map[int]int{100: 1, 200: 1},
			circles: [3][][]int{{{101, 102}, {201, 202, 203}}}},
	} {
		g := graphOf(tc.waits, tc.extra)
		for grade := range g.Dead {
			if !slices.EqualFunc(g.Dead[grade].Circles, tc.circles[grade], slices.Equal) {
				t.Errorf("%s: circles of grade %d: %v, want %v", tc.name, grade, g.Dead[grade].Circles, tc.circles[grade])
			}
		}
		if !slices.EqualFunc(g.Dead[Sure].Orphans, tc.orphans, slices.Equal) {
			t.Errorf("%s: orphans %v, want %v", tc.name, g.Dead[Sure].Orphans, tc.orphans)
		}
		if !slices.Equal(g.ClosedAt[Sure], tc.closed) {
			t.Errorf("%s: closed processes %v, want %v", tc.name, g.ClosedAt[Sure], tc.closed)
		}
	}
}

// The algorithm must find what the definition says: take away whatever has a
// waker outside, until nothing changes.
func TestClosedSetIsTheGreatestFixedPoint(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var waits []evidence.Wait
		extra := map[int]int{}
		for pid := 100; pid <= 300; pid += 100 {
			for tid := pid + 1; tid <= pid+1+r.IntN(5); tid++ {
				switch r.IntN(6) {
				case 0:
					extra[pid]++
				case 1:
					waits = append(waits, waitsForAnyone(pid, tid))
				case 2:
					waits = append(waits, waitsForProcess(pid, tid, evidence.BlockPipeRead, 100+100*r.IntN(3), 100+100*r.IntN(3)))
				default:
					waits = append(waits, waitsForOwner(pid, tid, owner(100+100*r.IntN(3)+1+r.IntN(5))))
				}
			}
		}
		g := graphOf(waits, extra)
		want := naive(waits, extra)
		got := map[int]bool{}
		for tid := range g.Closed {
			got[tid] = true
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v\n%+v %v", seed, got, want, waits, extra)
		}
		// Whatever is closed by named waits alone has a circle in it.
		if len(want) > 0 && !slices.ContainsFunc(waits, func(w evidence.Wait) bool { return want[w.TID] && w.Futex != nil && w.Futex.Owner == nil }) && len(g.Dead[Sure].Circles) == 0 {
			t.Fatalf("seed %d: closed %v and no circle", seed, want)
		}
	}
}

func naive(waits []evidence.Wait, extra map[int]int) map[int]bool {
	set, of := map[int]bool{}, map[int]int{}
	for _, w := range waits {
		set[w.TID], of[w.TID] = true, w.PID
	}
	whole := func(pid int) bool {
		n := 0
		for tid, p := range of {
			if p == pid {
				n++
				if !set[tid] {
					return false
				}
			}
		}
		return n > 0 && extra[pid] == 0
	}
	for changed := true; changed; {
		changed = false
		for _, w := range waits {
			if !set[w.TID] {
				continue
			}
			stays := true
			switch {
			case w.Blocked != nil:
				for _, k := range w.Blocked.Wakers {
					stays = stays && whole(k.PID)
				}
			case w.Futex.Owner != nil:
				stays = set[w.Futex.Owner.TID]
			default:
				stays = whole(w.PID)
			}
			if !stays {
				delete(set, w.TID)
				changed = true
			}
		}
	}
	return set
}

// mixed is a tree of n threads: half in one circle, half waiting for it.
func mixed(n int) []evidence.Wait {
	var waits []evidence.Wait
	for i := range n {
		o := evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x10", TID: 1000 + (i+1)%(n/2), PID: 100, Proof: evidence.ProofCode}
		o.NSTID = o.TID
		waits = append(waits, waitsForOwner(100, 1000+i, o))
	}
	return waits
}

func BenchmarkClosedSet5000(b *testing.B) {
	waits := mixed(5000)
	for b.Loop() {
		if g := graphOf(waits, nil); len(g.Dead[Sure].Circles) != 1 {
			b.Fatal("no circle")
		}
	}
}

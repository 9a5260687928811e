package facts

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

func u64(v uint64) *uint64 { return &v }

// circle is a wait for a mutex that owner holds.
func circle(tid, owner int, run uint64) evidence.Wait {
	look := evidence.ThreadLook{State: "S", Syscall: fmt.Sprintf("202 0x%x 0x80 0x2 0x0 0x0 0x0 0x1 0x2", tid), RunNS: u64(run), Slices: u64(7)}
	return evidence.Wait{PID: 1, TID: tid, A: look, B: look, Futex: &evidence.Futex{
		Addr: fmt.Sprintf("0x%x", tid), Val: 2, Caller: "pthread_mutex_lock",
		Owner: &evidence.LockOwner{Kind: evidence.KindMutex, Addr: fmt.Sprintf("0x%x", tid), NSTID: owner, TID: owner, PID: 1, Proof: evidence.ProofCode}}}
}

func looks(waits ...[]evidence.Wait) *evidence.Snapshot {
	s := &evidence.Snapshot{}
	for i, w := range waits {
		s.Waits = append(s.Waits, evidence.WaitLook{At: time.Unix(0, int64(i)*1e8), Waits: w})
	}
	return s
}

func TestCycles(t *testing.T) {
	for _, n := range []int{1, 2, 3, 50, 5000, 100000} {
		var waits []evidence.Wait
		for i := range n {
			waits = append(waits, circle(10+i, 10+(i+1)%n, 5))
		}
		g := waitGraphOf(looks(waits, waits))
		if len(g.Dead[Sure].Circles) != 1 || len(g.Dead[Sure].Circles[0]) != n || g.Dead[Sure].Circles[0][0] != 10 {
			t.Errorf("%d threads: %d cycles", n, len(g.Dead[Sure].Circles))
		}
		if g.SpanMS != 100 {
			t.Errorf("span %v", g.SpanMS)
		}
	}
}

func TestTwoCyclesAndVictims(t *testing.T) {
	waits := []evidence.Wait{
		circle(1, 2, 5), circle(2, 1, 5), // one circle
		circle(3, 4, 5), circle(4, 5, 5), circle(5, 3, 5), // another
		circle(6, 1, 5), circle(7, 6, 5), // wait for the first
		circle(8, 99, 5), // waits for a thread that runs
	}
	g := waitGraphOf(looks(waits, waits))
	if len(g.Dead[Sure].Circles) != 2 {
		t.Fatalf("cycles %v", g.Dead[Sure].Circles)
	}
	if b := g.Behind(g.Dead[Sure].Circles[0]); !slices.Equal(b, []int{6, 7}) {
		t.Errorf("behind the first: %v", b)
	}
	if b := g.Behind(g.Dead[Sure].Circles[1]); len(b) != 0 {
		t.Errorf("behind the second: %v", b)
	}
}

// A circle in which one thread ran between the looks, however shortly, is a
// picture put together from two moments.
func TestNoCycleWhenSomebodyRan(t *testing.T) {
	still, ran := circle(1, 2, 5), circle(2, 1, 5)
	ran.B.RunNS = u64(6)
	if g := waitGraphOf(looks([]evidence.Wait{still, ran})); len(g.Dead[Sure].Circles) != 0 {
		t.Errorf("ran while the words were read: %v", g.Dead[Sure].Circles)
	}
	before, now := circle(2, 1, 5), circle(2, 1, 6)
	if g := waitGraphOf(looks([]evidence.Wait{still, before}, []evidence.Wait{still, now})); len(g.Dead[Sure].Circles) != 0 {
		t.Errorf("ran between the looks: %v", g.Dead[Sure].Circles)
	}
	same := circle(2, 1, 5)
	same.B.Slices = u64(8)
	if g := waitGraphOf(looks([]evidence.Wait{still, same})); len(g.Dead[Sure].Circles) != 0 {
		t.Errorf("was scheduled: %v", g.Dead[Sure].Circles)
	}
}

func TestTimedWaitsAreNoEdges(t *testing.T) {
	a, b := circle(1, 2, 5), circle(2, 1, 5)
	b.Futex.Timed = true
	if g := waitGraphOf(looks([]evidence.Wait{a, b})); len(g.Dead[Sure].Circles) != 0 {
		t.Errorf("%v", g.Dead[Sure].Circles)
	}
}

func TestUnclocked(t *testing.T) {
	a, b := circle(1, 2, 5), circle(2, 1, 5)
	for _, w := range []*evidence.Wait{&a, &b} {
		w.A.RunNS, w.A.Slices, w.B.RunNS, w.B.Slices = nil, nil, nil, nil
	}
	g := waitGraphOf(looks([]evidence.Wait{a, b}, []evidence.Wait{a, b}))
	if len(g.Dead[Sure].Circles) != 1 || !g.Unclocked {
		t.Errorf("cycles %v, unclocked %v", g.Dead[Sure].Circles, g.Unclocked)
	}
}

// One circle of so many threads: the time for each must not grow with them.
func BenchmarkWaitGraph(b *testing.B) {
	for _, n := range []int{131, 5000, 100000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var waits []evidence.Wait
			for i := range n {
				waits = append(waits, circle(10+i, 10+(i+1)%n, 5))
			}
			s := looks(waits, waits)
			for b.Loop() {
				if g := waitGraphOf(s); len(g.Dead[Sure].Circles) != 1 {
					b.Fatal("no circle")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/thread")
		})
	}
}

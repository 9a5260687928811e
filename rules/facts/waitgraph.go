package facts

import (
	"maps"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Waiter is a thread that sleeps, without a time-out, in a wait whose wakers
// are known: nobody else can end it. One of ForTID, Procs, Anonymous and Lost
// says who they are.
type Waiter struct {
	PID, TID int
	// On is what it waits on: a lock kind of evidence ("mutex", "rwlock",
	// "RLock", "GIL", "thread"), a block kind ("pipe-read", "child"), or "" for
	// a futex that names nobody.
	On string
	// Addr is the lock's address, or the pipe, socket or file; may be "".
	Addr string
	// ForTID is the one thread that can end the wait, of process ForPID.
	ForPID, ForTID int
	// Procs: every thread of these processes can end it.
	Procs []int
	// Anonymous: every other thread of the same process can.
	Anonymous bool
	// Lost says why nobody can: the owner has ended, or the lock was copied by
	// fork while it was held.
	Lost Lost
	// Proof says what the naming of the waker rests on.
	Proof Proof
	// Look and Wait are the indexes into Snapshot.Waits.
	Look, Wait int
}

// Lost says how a lock lost its owner.
type Lost string

// The ways a lock loses its owner.
const (
	LostEnded  Lost = "ended"
	LostForked Lost = "forked"
)

// Proof is how sure it is who can end a wait, the surest first.
type Proof int

// The grades. A wait that is not sure counts in the graph of a lower grade
// only; in a higher one it is taken as one that anybody can end who could end
// it at all.
const (
	// Sure: the kernel says so, or code and memory do together.
	Sure Proof = iota
	// Inferred: a thread is inside the `with` block of the lock.
	Inferred
	// Lookalike: the memory fits, no code was found.
	Lookalike
)

// WaitGraph is who waits for whom, from readings that hold together: see
// evidence.WaitLook.
type WaitGraph struct {
	// Looks is how many readings there are; the graph is that of the last one,
	// restricted to waits that were the same in the one before.
	Looks int
	// SpanMS is the time between those two readings.
	SpanMS float64
	// Waiters are all threads that only known ones can wake, by TID.
	Waiters map[int]Waiter
	// Dead is what can never move again, at each grade of proof; a grade holds
	// only what the surer ones do not.
	Dead [Lookalike + 1]Dead
	// Closed are the threads that nothing in the tree can wake, at the surest
	// grade: those of Dead, those that wait for them, and sets that close
	// without any owner.
	Closed map[int]bool
	// ClosedAt are the processes of which every thread is closed, at each grade
	// that any wait has.
	ClosedAt [Lookalike + 1][]int
	// GILs are the interpreters whose lock did not change hands between the
	// looks.
	GILs []GILHeld
	// Unread counts futex waits whose memory could not be read.
	Unread int
	// Unclocked: the kernel gives no schedstat, so that nothing proves that a
	// thread did not run between two looks.
	Unclocked bool

	behind map[int][]int // by waker TID: who waits for it by name
}

// Dead are threads that can never run again.
type Dead struct {
	// Circles are the closed circles, each in waiting order, the lowest TID
	// first.
	Circles [][]int
	// Orphans are waits for a lock that nobody can release, by lock.
	Orphans [][]int
}

func waitGraphOf(s *evidence.Snapshot) WaitGraph {
	g := WaitGraph{Looks: len(s.Waits), Waiters: map[int]Waiter{}, Closed: map[int]bool{}}
	if len(s.Waits) == 0 {
		return g
	}
	last := len(s.Waits) - 1
	gils := gilsOf(s, last)
	g.Waiters = waitersOf(s, last, gils, &g)
	if last > 0 {
		awakeForGIL(s, last-1, gils, g.Waiters)
		g.SpanMS = float64(s.Waits[last].At.Sub(s.Waits[last-1].At).Microseconds()) / 1000
		keepConfirmed(s, g.Waiters, last-1)
	}
	g.index()
	g.close(&s.Waits[last])
	g.heldGILs(s, gils)
	return g
}

// waitersOf reads the waits of one look: only those of threads that did not
// run while the words were read.
func waitersOf(s *evidence.Snapshot, look int, gils map[int]gilState, g *WaitGraph) map[int]Waiter {
	waiters := make(map[int]Waiter, len(s.Waits[look].Waits))
	for i := range s.Waits[look].Waits {
		w := &s.Waits[look].Waits[i]
		n := Waiter{PID: w.PID, TID: w.TID, Look: look, Wait: i}
		if w.Futex != nil && w.Futex.Unread != "" {
			g.Unread++
		}
		if n.forGIL(w, gils) {
			waiters[w.TID] = n
			continue
		}
		slept, clocked := SleptThrough(w.A, w.B)
		if !clocked {
			g.Unclocked = true
		}
		if slept && (n.forFutex(w.Futex) || n.forBlocked(w.Blocked)) {
			waiters[w.TID] = n
		}
	}
	return waiters
}

// forFutex fills in who can end a wait on a futex; false if that is not known.
func (n *Waiter) forFutex(f *evidence.Futex) bool {
	if f == nil || f.Timed || f.Call == "futex_waitv" {
		return false
	}
	// Whoever owns it, the kernel wakes a private futex for threads of the same
	// memory only.
	n.Anonymous = f.Private || f.Local
	switch o, p := f.Owner, f.Python; {
	case o != nil && o.Kind == evidence.KindThread && o.TID == n.TID:
		// Nobody joins himself: the word is something else.
	case o != nil:
		n.On, n.Addr = string(o.Kind), o.Addr
		if o.Proof == evidence.ProofLayout {
			n.Proof = Lookalike
		}
		switch {
		case o.Forked:
			n.Lost, n.ForPID, n.ForTID = LostForked, o.PID, o.TID
		case o.Ended:
			n.Lost = LostEnded
		case o.TID != 0:
			n.ForPID, n.ForTID = o.PID, o.TID
		default:
			return false // it changes hands, or who it is is not known
		}
	case p != nil && p.OwnerTID != 0 && p.OwnerTID != n.TID:
		n.On, n.Addr, n.ForPID, n.ForTID = string(p.Kind), p.Object, n.PID, p.OwnerTID
	case p != nil && len(p.Inside) == 1 && p.Inside[0] != 0:
		n.On, n.Addr, n.ForPID, n.ForTID, n.Proof = string(p.Kind), p.Object, n.PID, p.Inside[0], Inferred
	case p != nil && p.OwnerGone:
		// The list of threads and the owner were not read at one instant.
		n.On, n.Addr, n.Lost, n.Proof = string(p.Kind), p.Object, LostEnded, Inferred
	}
	return n.Anonymous || n.named()
}

// named: the wait says by itself who can end it.
func (n *Waiter) named() bool { return n.ForTID != 0 || n.Lost != "" || n.Procs != nil }

// forBlocked fills in who can end a wait in another call.
func (n *Waiter) forBlocked(b *evidence.Blocked) bool {
	if b == nil || b.Unseen != "" && !b.Likely {
		return false
	}
	n.On, n.Addr = string(b.Kind), b.Object
	if b.Unseen != "" {
		n.Proof = Inferred // somebody whose descriptors are not readable might
	}
	n.Procs = []int{}
	seen := map[int]bool{}
	for _, w := range b.Wakers {
		if !seen[w.PID] {
			seen[w.PID] = true
			n.Procs = append(n.Procs, w.PID)
		}
	}
	return true
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

// keepConfirmed drops the waits that an earlier look does not show in the very
// same call: a thread that ran in between may have come round to the same
// picture. A lock that has lost its owner must have lost the same one then.
func keepConfirmed(s *evidence.Snapshot, waiters map[int]Waiter, look int) {
	before := make(map[int]*evidence.Wait, len(s.Waits[look].Waits))
	for i := range s.Waits[look].Waits {
		w := &s.Waits[look].Waits[i]
		before[w.TID] = w
	}
	for tid, n := range waiters {
		if n.On == string(evidence.PythonGILWait) && n.Look == look {
			continue // awake in the last look, see awakeForGIL
		}
		now := &s.Waits[n.Look].Waits[n.Wait]
		old := before[tid]
		if old == nil || old.PID != now.PID || n.Lost != "" && !sameOwner(old, now) {
			delete(waiters, tid)
			continue
		}
		if n.On == string(evidence.PythonGILWait) {
			continue // it wakes up to look; the lock's own words confirm it
		}
		if slept, _ := SleptThrough(old.A, now.B); !slept || !sameWakers(old.Blocked, now.Blocked) {
			delete(waiters, tid)
		}
	}
}

// sameWakers: a descriptor that is handed over while all descriptors are read
// can be missed once.
func sameWakers(a, b *evidence.Blocked) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	pids := func(b *evidence.Blocked) map[int]bool {
		all := map[int]bool{}
		for _, w := range b.Wakers {
			all[w.PID] = true
		}
		return all
	}
	return (a.Unseen == "") == (b.Unseen == "") && maps.Equal(pids(a), pids(b))
}

func sameOwner(a, b *evidence.Wait) bool {
	if a.Futex == nil || b.Futex == nil {
		return false
	}
	if a.Futex.Owner == nil || b.Futex.Owner == nil {
		x, y := a.Futex.Python, b.Futex.Python
		return x != nil && y != nil && x.OwnerGone && y.OwnerGone && x.Object == y.Object
	}
	return a.Futex.Owner.NSTID == b.Futex.Owner.NSTID
}

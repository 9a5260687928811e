package process

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// startCan starts a scenario, and skips where it says that it cannot be.
func startCan(t *testing.T, exe string, args ...string) *scenario.Process {
	t.Helper()
	probe := exec.Command(exe, args...)
	probe.Stdin = strings.NewReader("")
	if out, _ := probe.Output(); strings.HasPrefix(string(out), "cannot") {
		t.Skip(strings.TrimSpace(string(out)))
	}
	return scenario.StartCmd(t, nil, exec.Command(exe, args...))
}

// pair reads the two thread IDs that a scenario printed.
func pair(t *testing.T, s *scenario.Process) (first, second int) {
	t.Helper()
	if _, err := fmt.Sscan(s.Ready, &first, &second); err != nil {
		t.Fatalf("ready %q: %v", s.Ready, err)
	}
	return first, second
}

// lockCase is a kind of lock and what its memory must say.
type lockCase struct {
	kind  string
	lock  evidence.LockKind
	proof evidence.OwnerProof
	// parks: the second thread is refused by the kernel, and parked.
	parks bool
	local bool
}

func testLocks(t *testing.T, exe string, cases []lockCase) {
	r := reader(t)
	for _, tc := range cases {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T, w evidence.Wait, owner int) {
				t.Helper()
				if !stood(w) || w.Futex.Owner == nil {
					t.Fatalf("wait: %+v", w.Futex)
				}
				o := *w.Futex.Owner
				if o.Kind != tc.lock || o.Proof != tc.proof || o.TID != owner || o.PID != w.PID || o.NSTID != owner || o.Ended || o.Forked || o.Addr == "" {
					t.Errorf("owner: %+v, want thread %d by %s, %s; caller %q", o, owner, tc.proof, tc.lock, w.Futex.Caller)
				}
				if w.Futex.Local != tc.local {
					t.Errorf("local: %v", w.Futex.Local)
				}
			}
			s := startCan(t, exe, tc.kind, "abba")
			first, second := pair(t, s)
			waits := waitsOf(t, r, treeOf(t, r, s.PID))
			// Two that come at the same instant see the circle both, and the kernel
			// refuses both: that is another picture.
			for range 5 {
				a, b := waits[first].Futex, waits[second].Futex
				if !tc.parks || a == nil || b == nil || a.Owner != nil || b.Owner != nil {
					break
				}
				s = startCan(t, exe, tc.kind, "abba")
				first, second = pair(t, s)
				waits = waitsOf(t, r, treeOf(t, r, s.PID))
			}
			if o := waits[first].Futex; tc.parks && o != nil && o.Owner == nil {
				first, second = second, first // the one that came last is refused
			}
			check(t, waits[first], second)
			if tc.parks {
				if w := waits[second]; !stood(w) || w.Futex.Owner != nil || w.Futex.Mutex != nil || !w.Futex.Local {
					t.Errorf("parked thread: %+v", w.Futex)
				}
			} else {
				check(t, waits[second], first)
			}
			// The same picture for the first thread, in programs that go on.
			for _, mode := range []string{"sleeps", "timed", "tries"} {
				if mode == "timed" && tc.parks {
					continue // the kernel refuses this circle, too
				}
				s := startCan(t, exe, tc.kind, mode)
				first, second := pair(t, s)
				waits := waitsOf(t, r, treeOf(t, r, s.PID))
				check(t, waits[first], second)
				if w, ok := waits[second]; ok && (w.Futex == nil || !w.Futex.Timed || w.Futex.Owner != nil) {
					t.Errorf("%s: the second thread waits: %+v", mode, w.Futex)
				}
				s.End()
			}
		})
	}
}

func TestLocksOfEveryKind(t *testing.T) {
	const mutex, robust, inherit = evidence.KindMutex, evidence.KindRobustMutex, evidence.KindPIMutex
	const code, kernel = evidence.ProofCode, evidence.ProofKernel
	testLocks(t, scenario.Build(t, "locks"), []lockCase{
		{"normal", mutex, code, false, true},
		{"recursive", mutex, code, false, true},
		{"errorcheck", mutex, code, false, true},
		{"adaptive", mutex, code, false, true},
		{"protect", mutex, code, false, true},
		{"robust", robust, code, false, true},
		{"robust-recursive", robust, code, false, true},
		{"robust-errorcheck", robust, code, false, true},
		{"robust-adaptive", robust, code, false, true},
		{"pi", inherit, kernel, true, true},
		{"robust-pi", inherit, kernel, true, true},
		{"pshared", mutex, code, false, false},
		{"pshared-recursive", mutex, code, false, false},
		{"pshared-errorcheck", mutex, code, false, false},
		{"pshared-adaptive", mutex, code, false, false},
		{"pshared-robust", robust, code, false, false},
		{"pshared-pi", inherit, kernel, true, false},
		{"pshared-robust-pi", inherit, kernel, true, false},
	})
}

func TestLocksOfMusl(t *testing.T) {
	const musl, inherit = evidence.KindMuslMutex, evidence.KindPIMutex
	const code, kernel = evidence.ProofCode, evidence.ProofKernel
	testLocks(t, scenario.BuildMusl(t, "locks"), []lockCase{
		{"recursive", musl, code, false, true},
		{"errorcheck", musl, code, false, true},
		{"robust", musl, code, false, true},
		{"robust-recursive", musl, code, false, true},
		{"pshared-recursive", musl, code, false, false},
		{"pshared-robust", musl, code, false, false},
		{"pi", inherit, kernel, true, true},
	})
}

// A musl mutex of the normal type names nobody.
func TestNormalMutexOfMusl(t *testing.T) {
	s := scenario.StartCmd(t, nil, exec.Command(scenario.BuildMusl(t, "locks"), "normal", "abba"))
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	if len(waits) != 2 {
		t.Errorf("%d waits, want 2", len(waits))
	}
	for _, w := range waits {
		if f := w.Futex; f.Owner != nil || f.Mutex != nil || *f.Word != 0x80000010 || f.Caller != "pthread_mutex_timedlock" && f.Caller != "pthread_mutex_lock" {
			t.Errorf("%+v, caller %q", f, f.Caller)
		}
	}
}

func TestJoinOfMusl(t *testing.T) {
	s := scenario.StartCmd(t, nil, exec.Command(scenario.BuildMusl(t, "join_cycle")))
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	joins := 0
	for _, w := range waits {
		if o := w.Futex.Owner; o != nil && o.Kind == evidence.KindThread {
			joins++
			if o.TID == 0 || o.TID == w.TID || o.PID != w.PID || o.Proof != evidence.ProofCode || !strings.Contains(w.Futex.Caller, "join") {
				t.Errorf("join: %+v, caller %q", o, w.Futex.Caller)
			}
		}
	}
	if joins != 1 {
		t.Errorf("%d joins of %d waits, want 1", joins, len(waits))
	}
}

func TestRWLocks(t *testing.T) {
	exe := scenario.Build(t, "rwlocks")
	r := reader(t)
	for _, shared := range []string{"", "pshared"} {
		for _, tc := range []struct {
			mode                string
			ownsFirst, ownsBoth bool
		}{
			{"writers", true, true}, {"reader-writer", true, true}, {"sleeps", true, false}, {"reads", false, false},
		} {
			t.Run(tc.mode+shared, func(t *testing.T) {
				args := []string{tc.mode}
				if shared != "" {
					args = append(args, shared)
				}
				s := scenario.StartCmd(t, nil, exec.Command(exe, args...))
				first, second := pair(t, s)
				waits := waitsOf(t, r, treeOf(t, r, s.PID))
				check := func(waiter, owner int, owns bool) {
					t.Helper()
					w := waits[waiter]
					if w.Futex == nil || !owns {
						if w.Futex != nil && w.Futex.Owner != nil {
							t.Errorf("owner: %+v", w.Futex.Owner)
						}
						return
					}
					if o := w.Futex.Owner; o == nil || o.Kind != evidence.KindRWLock || o.Proof != evidence.ProofCode || o.TID != owner || !strings.HasPrefix(w.Futex.Caller, "pthread_rwlock_") {
						t.Errorf("thread %d: owner %+v, want %d; caller %q", waiter, o, owner, w.Futex.Caller)
					}
				}
				if _, ok := waits[first]; !ok {
					t.Error("the first thread does not wait")
				}
				check(first, second, tc.ownsFirst)
				check(second, first, tc.ownsBoth)
			})
		}
	}
}

// Plain memory with a thread's ID in it is never more than a likeness.
func TestLookAlikes(t *testing.T) {
	s := scenario.Start(t, "look_alikes")
	r := reader(t)
	waits := waitsOf(t, r, treeOf(t, r, s.PID))
	for _, word := range strings.Fields(s.Ready) {
		name, id, _ := strings.Cut(word, "=")
		var tid int
		fmt.Sscan(id, &tid)
		f := waits[tid].Futex
		if f == nil || f.Word == nil || f.Caller != syscallFunction {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		if name == "future" {
			if f.Owner != nil {
				t.Errorf("a future has the owner %+v", f.Owner)
			}
			continue
		}
		// It does look alike: else this test would show nothing.
		if o := f.Owner; o == nil || o.TID != s.PID || o.Proof != evidence.ProofLayout {
			t.Errorf("%s: owner %+v, want %d by layout", name, o, s.PID)
		}
	}
}

package process

import (
	"context"
	"os/exec"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// ownerOf is the one wait that has an owner.
func ownerOf(t *testing.T, waits map[int]evidence.Wait) (evidence.Wait, evidence.LockOwner) {
	t.Helper()
	var found []evidence.Wait
	for _, w := range waits {
		if w.Futex != nil && w.Futex.Owner != nil {
			found = append(found, w)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d waits with owners, want 1: %+v", len(found), waits)
	}
	return found[0], *found[0].Futex.Owner
}

func TestOrphans(t *testing.T) {
	r := reader(t)
	for _, mode := range []string{"ended", "leader", "process"} {
		s := scenario.Start(t, "orphan", mode)
		if _, o := ownerOf(t, waitsOf(t, r, treeOf(t, r, s.PID))); !o.Ended || o.TID != 0 || o.PID != 0 || o.NSTID == 0 || o.Forked {
			t.Errorf("%s: %+v", mode, o)
		}
	}
	s := scenario.Start(t, "orphan", "lives")
	if _, o := ownerOf(t, waitsOf(t, r, treeOf(t, r, s.PID))); o.Ended || o.TID == 0 || o.PID != s.PID || o.Forked {
		t.Errorf("lives: %+v", o)
	}
}

// Owners that come and go with the lock are never taken for ones that ended
// with it.
func TestOwnersThatComeAndGo(t *testing.T) {
	s := scenario.Start(t, "orphan", "handed")
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	samples, named, gone := 400, 0, 0
	if testing.Short() {
		samples = 100
	}
	for range samples {
		look, _ := r.Waits(context.Background(), procs)
		for _, w := range look.Waits {
			f := w.Futex
			if f == nil || f.Owner == nil || f.Owner.NSTID == 0 {
				continue
			}
			named++
			if f.Owner.TID == 0 {
				gone++
			}
			if f.Owner.Ended {
				t.Fatalf("owner that handed the lock on: %+v", f.Owner)
			}
		}
	}
	t.Logf("%d owners named, %d of them already gone or not yet listed", named, gone)
	if named == 0 {
		t.Error("no owner seen: the program proves nothing")
	}
}

func TestForked(t *testing.T) {
	r := reader(t)
	exe := scenario.Build(t, "forked")
	for _, kind := range []string{"normal", "recursive", "robust"} {
		for _, mode := range []string{"waits", "sleeps", "own"} {
			s := scenario.StartCmd(t, nil, exec.Command(exe, kind, mode))
			child, thread := pair(t, s)
			procs := treeOf(t, r, s.PID)
			inTree := waitsOf(t, r, procs)[child]
			alone := waitsOf(t, r, treeOf(t, r, child))[child]
			for _, w := range []evidence.Wait{inTree, alone} {
				if w.Futex == nil || w.Futex.Owner == nil {
					t.Errorf("%s %s: no owner: %+v", kind, mode, w.Futex)
					continue
				}
				o := w.Futex.Owner
				forked, pid := true, s.PID
				if mode == "own" {
					forked, pid, thread = false, child, o.TID
				}
				if o.Forked != forked || o.PID != pid || o.TID != thread || o.Ended || !w.Futex.Local {
					t.Errorf("%s %s: %+v", kind, mode, o)
				}
			}
			s.End()
		}
	}
}

// The same in a PID namespace, where IDs in memory say nothing here.
func TestOwnersInPIDNamespace(t *testing.T) {
	r := reader(t)
	t.Run("process-shared", func(t *testing.T) {
		s := startOr(t, "pid_namespace", scenario.Build(t, "pshared"), "2")
		procs := treeOf(t, r, s.PID)
		if waits := waitsOf(t, r, procs); circle(waits) != 2 || len(procs) != 4 {
			t.Errorf("%d processes: %+v", len(procs), waits)
		}
	})
	t.Run("ended", func(t *testing.T) {
		s := startOr(t, "pid_namespace", scenario.Build(t, "orphan"))
		if _, o := ownerOf(t, waitsOf(t, r, treeOf(t, r, s.PID))); !o.Ended || o.NSTID != 2 {
			t.Errorf("%+v", o)
		}
	})
}

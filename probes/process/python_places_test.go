package process

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// A child has the memory of its parent, and none of its threads.
func TestPythonForked(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "forked")
		if len(s.procs) != 2 {
			t.Fatalf("%d processes", len(s.procs))
		}
		child := s.procs[1].PID
		eventually(t, "the child waits for the RLock", func() bool {
			look, _ := s.r.Waits(context.Background(), s.procs)
			for _, p := range look.Python {
				for _, th := range p.Threads {
					if th.TID == 0 || p.PID == child && (th.TID != child || len(th.Inside) != 0) {
						t.Errorf("process %d: %+v", p.PID, th)
					}
				}
			}
			for _, w := range look.Waits {
				if w.TID != child || w.Futex == nil || w.Futex.Python == nil {
					continue
				}
				// Its owner is a thread that only the parent has.
				if diff := cmp.Diff(&evidence.PythonLock{Kind: evidence.PythonRLock, Object: s.locks[0], OwnerGone: true, Count: 1}, w.Futex.Python); diff != "" {
					t.Errorf("the child waits for (-want +got):\n%s", diff)
				}
				return true
			}
			return false
		})
	})
}

func TestPythonSubinterpreter(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		if py.freeThreaded {
			t.Skip("no threads of other interpreters in this build")
		}
		s := startPython(t, py, "subinterpreter")
		_, threads, _ := s.look()
		outer := threads["runs_other"]
		p, _, _ := s.look()
		if p.GIL == nil || !slices.ContainsFunc(p.Threads, func(th evidence.PythonThread) bool {
			// Up to 3.12 its state has the ID of the thread that made it.
			return (th.TID == outer.TID || th.TID == 0 && py.minor() <= "12") && slices.ContainsFunc(th.Frames, func(f evidence.PythonFrame) bool { return f.Function == "sleeps" && f.Line == 3 })
		}) {
			t.Errorf("thread %d does not sleep in the second interpreter: %+v", outer.TID, p)
		}
	})
}

// In a container the thread IDs in memory are those of its namespace.
func TestPythonInPIDNamespace(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root for a PID namespace")
	}
	if exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run() != nil {
		t.Skip("no PID namespaces here")
	}
	eachPython(t, func(t *testing.T, py cpython) {
		lockThread(t)
		p := scenario.StartCmd(t, nil, exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", py.exe, pythonScript, "rlock-abba"))
		r := reader(t)
		s := &pythonScenario{t: t, r: r, procs: treeOf(t, r, p.PID), locks: strings.Fields(p.Ready)}
		_, threads, waits := s.look()
		first, second := threads["takes_first"], threads["takes_second"]
		if first.NSTID > 10 || first.TID < 10 {
			t.Errorf("%+v", first)
		}
		if got := s.lockOf(waits, first); got.OwnerTID != second.TID || got.OwnerNSTID != second.NSTID || got.Object != s.locks[1] {
			t.Errorf("waits for %+v, want one of %+v", got, second)
		}
	})
}

// Without the right to read its memory there is no interpreter, and the run
// says so.
func TestPythonDenied(t *testing.T) {
	if isRoot() {
		t.Skip("root may read everything")
	}
	r := reader(t)
	procs := treeOf(t, r, 1)
	look, _ := r.Waits(context.Background(), procs[:1])
	if len(look.Python) != 0 {
		t.Errorf("%+v", look.Python)
	}
}

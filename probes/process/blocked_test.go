package process

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// blockedIn reads the waits outside futex calls in the processes of a scenario
// below its first one, whose main thread only waits for the test.
func blockedIn(t *testing.T, r *Reader, pid int) ([]evidence.Process, []evidence.Wait) {
	t.Helper()
	procs := treeOf(t, r, pid)
	look, run := r.Waits(context.Background(), procs)
	if run.Status != evidence.OK {
		t.Fatalf("run: %+v", run)
	}
	return procs, onlyBlocked(procs, look)
}

func onlyBlocked(procs []evidence.Process, look evidence.WaitLook) []evidence.Wait {
	var waits []evidence.Wait
	for _, w := range look.Waits {
		if w.Blocked != nil && w.PID != procs[0].PID {
			waits = append(waits, w)
		}
	}
	slices.SortFunc(waits, func(a, b evidence.Wait) int { return placeIn(procs, a.PID) - placeIn(procs, b.PID) })
	return waits
}

// placeIn is where a process stands in the tree, 0 for the first.
func placeIn(procs []evidence.Process, pid int) int {
	return slices.IndexFunc(procs, func(p evidence.Process) bool { return p.PID == pid })
}

// shape is what a test expects of a wait: processes by their place in the tree.
type shape struct {
	Process int
	Kind    evidence.BlockKind
	Wakers  []int
	// Unseen is a part of what has to stand there, "" for nothing.
	Unseen string
	Likely bool
}

func shapes(procs []evidence.Process, waits []evidence.Wait, want []shape) []shape {
	var got []shape
	for i, w := range waits {
		b := w.Blocked
		s := shape{Process: placeIn(procs, w.PID), Kind: b.Kind, Unseen: b.Unseen, Likely: b.Likely}
		for _, k := range b.Wakers {
			s.Wakers = append(s.Wakers, placeIn(procs, k.PID))
		}
		slices.Sort(s.Wakers)
		if i >= len(want) || want[i].Unseen != deniedHere && want[i].Unseen != outsideHere {
			s.withoutDoubtsOfHere()
		}
		if i < len(want) && want[i].Unseen != "" && strings.Contains(s.Unseen, want[i].Unseen) {
			s.Unseen = want[i].Unseen
		}
		got = append(got, s)
	}
	return got
}

// Who is seen depends on who looks: that nobody else has the other end is only
// certain with the right to look at every process of the machine.
const (
	deniedHere  = "of other users could not be read"
	outsideHere = "outside this PID namespace"
)

// withoutDoubtsOfHere drops what is said because this test may not look at
// every process; TestDescriptorScan has what is said to one who may.
func (s *shape) withoutDoubtsOfHere() {
	var left []string
	for why := range strings.SplitSeq(s.Unseen, "; ") {
		if why != "" && !strings.Contains(why, deniedHere) && !strings.Contains(why, outsideHere) {
			left = append(left, why)
		}
	}
	if s.Likely && len(left) == 0 {
		s.Unseen, s.Likely = "", false
	}
}

const (
	pipeRead   = evidence.BlockPipeRead
	pipeWrite  = evidence.BlockPipeWrite
	socketRead = evidence.BlockSocketRead
	childEnds  = evidence.BlockChild
	byFlock    = evidence.BlockFlock
	byPosix    = evidence.BlockPosixLock
)

// Each scenario beside its twin, which shows the same kind of wait and has a
// process in it that sleeps in nanosleep: it is among the wakers and not among
// the waits.
func TestBlocked(t *testing.T) {
	const named = "open a FIFO by its name"
	for _, c := range []struct {
		scenario, mode string
		want           []shape
	}{
		{"pipe_ends", "self", []shape{{1, pipeRead, []int{1}, "", false}}},
		{"pipe_ends", "self-full", []shape{{1, pipeWrite, []int{1}, "", false}}},
		{"pipe_ends", "threads", []shape{{1, pipeRead, []int{1}, "", false}}},
		{"pipe_ends", "stdout", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeWrite, []int{1}, "", false}}},
		{"pipe_ends", "stdout-slow", []shape{{2, pipeWrite, []int{1}, "", false}}},
		{"pipe_ends", "cross", []shape{{1, pipeRead, []int{2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"pipe_ends", "cross-slow", []shape{{1, pipeRead, []int{2}, "", false}}},
		{"pipe_ends", "flight", []shape{{1, pipeRead, []int{1}, "on their way", false}}},
		{"pipe_ends", "fifo", []shape{{1, pipeRead, []int{2}, named, true}, {2, pipeRead, []int{1}, named, true}}},
		{"pipe_ends", "fifo-self", []shape{{1, pipeRead, []int{1}, named, true}}},
		{"socket_ends", "read", []shape{{1, socketRead, []int{1, 2}, "", false}, {2, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "read-slow", []shape{{1, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "full", []shape{{1, evidence.BlockSocketWrite, []int{1, 2}, "", false}, {2, evidence.BlockSocketWrite, []int{1, 2}, "", false}}},
		{"socket_ends", "full-slow", []shape{{1, evidence.BlockSocketWrite, []int{1, 2}, "", false}}},
		{"socket_ends", "datagram", []shape{{1, socketRead, []int{1, 2}, "", false}, {2, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "timeout", []shape{{1, socketRead, []int{1, 2}, "the socket has a time-out of 1h", false}, {2, socketRead, []int{1, 2}, "the socket has a time-out of 1h", false}}},
		{"socket_ends", "tcp", []shape{{1, socketRead, []int{1, 2}, "", false}, {2, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "tcp-slow", []shape{{1, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "tcp-trickle", []shape{{1, socketRead, []int{1, 2}, "", false}, {2, socketRead, []int{1, 2}, "", false}}},
		{"socket_ends", "tcp-timeout", []shape{{1, socketRead, []int{1, 2}, "the socket has a time-out of 1h", false}, {2, socketRead, []int{1, 2}, "the socket has a time-out of 1h", false}}},
		{"socket_ends", "tcp-self", []shape{{1, evidence.BlockOther, nil, "closed or not yet open", false}}},
		{"waits_for_child", "pid", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"waits_for_child", "any", []shape{{1, childEnds, []int{1, 2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"waits_for_child", "group", []shape{{1, childEnds, []int{1, 2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"waits_for_child", "pidfd", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"waits_for_child", "sleeps", []shape{{1, childEnds, []int{2}, "", false}}},
		{"waits_for_child", "other", []shape{{1, childEnds, []int{2}, "", false}, {3, pipeRead, []int{1}, "", false}}},
		{"waits_for_child", "stopped", []shape{{1, childEnds, []int{2}, "stopped or continued", false}, {2, pipeRead, []int{1}, "", false}}},
		{"file_locks", "flock", []shape{{1, byFlock, []int{2}, "", false}, {2, byFlock, []int{1}, "", false}}},
		{"file_locks", "flock-slow", []shape{{1, byFlock, []int{2}, "", false}}},
		{"file_locks", "self", []shape{{1, byFlock, []int{1}, "", false}}},
		{"file_locks", "inherited", []shape{{2, byFlock, []int{3}, "", false}, {3, byFlock, []int{2}, "", false}}},
		{"file_locks", "inherited-slow", []shape{{2, byFlock, []int{3}, "", false}}},
		{"file_locks", "posix-slow", []shape{{1, byPosix, []int{2}, "", false}}},
		{"file_locks", "ofd", []shape{{1, evidence.BlockOFDLock, []int{2}, "", false}, {2, evidence.BlockOFDLock, []int{1}, "", false}}},
	} {
		t.Run(c.scenario+" "+c.mode, func(t *testing.T) {
			args := []string{c.mode}
			switch dir := t.TempDir(); {
			case c.scenario == "file_locks":
				args = append(args, dir)
			case c.mode == "fifo":
				args = append(args, dir+"/a", dir+"/b")
			case c.mode == "fifo-self":
				args = append(args, dir+"/a")
			}
			r := reader(t)
			s := scenario.Start(t, c.scenario, args...)
			procs, waits := blockedIn(t, r, s.PID)
			if diff := cmp.Diff(c.want, shapes(procs, waits, c.want)); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			for _, w := range waits {
				if t.Failed() {
					t.Logf("%+v", w.Blocked)
				}
				if !cmp.Equal(w.A, w.B) || w.Futex != nil {
					t.Errorf("thread %d did not stand: %+v", w.TID, w)
				}
				for _, k := range w.Blocked.Wakers {
					if k.Name != c.scenario {
						t.Errorf("waker %+v is called %q", k, k.Name)
					}
				}
			}
		})
	}
}

// The kernel refuses a ring of POSIX locks, but not a long one: it gives up
// after ten steps (fs/locks.c, posix_locks_deadlock).
func TestBlockedPosixRing(t *testing.T) {
	dir := t.TempDir()
	if s := scenario.Start(t, "file_locks", "posix", dir, "2"); s.Ready != "refused" {
		t.Errorf("a ring of two: %q, want the kernel to refuse it", s.Ready)
	}
	s := scenario.Start(t, "file_locks", "posix", t.TempDir(), "14")
	if s.Ready == "refused" {
		t.Skip("this kernel refuses a ring of 14")
	}
	procs, waits := blockedIn(t, reader(t), s.PID)
	if len(waits) != 14 {
		t.Fatalf("%d processes wait, want 14", len(waits))
	}
	for i, w := range waits {
		b := w.Blocked
		if len(b.Wakers) != 1 || b.Wakers[0].PID != procs[1+(i+1)%14].PID || b.Unseen != "" || b.Kind != byPosix {
			t.Errorf("process %d of the ring: %+v", i, b)
		}
	}
}

// An ordinary user's own processes: the other end is found, but others of whom
// nothing is seen may have it, too. Children and POSIX locks are certain.
func TestBlockedOrdinaryUser(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to become another user")
	}
	for _, c := range []struct {
		scenario, mode string
		want           []shape
	}{
		{"pipe_ends", "stdout", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeWrite, []int{1}, deniedHere, true}}},
		{"socket_ends", "read", []shape{{1, socketRead, []int{1, 2}, deniedHere, true}, {2, socketRead, []int{1, 2}, deniedHere, true}}},
		{"socket_ends", "tcp", []shape{{1, socketRead, []int{1, 2}, deniedHere, true}, {2, socketRead, []int{1, 2}, deniedHere, true}}},
		{"file_locks", "flock-slow", []shape{{1, byFlock, []int{2}, deniedHere, true}}},
		{"file_locks", "posix-slow", []shape{{1, byPosix, []int{2}, "", false}}},
	} {
		t.Run(c.scenario+" "+c.mode, func(t *testing.T) {
			exe, args := scenario.Build(t, c.scenario), []string{c.mode}
			if c.scenario == "file_locks" {
				args = append(args, openDir(t))
			}
			s := scenario.StartCmd(t, nobody, exec.Command(exe, args...))
			v := readAs(t, nobody, s.PID)
			waits := onlyBlocked(v.Procs, v.Waits)
			if diff := cmp.Diff(c.want, shapes(v.Procs, waits, c.want)); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// openDir is a directory for every user.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != "/tmp" && at != "/"; at = at[:strings.LastIndexByte(at, '/')] {
		if err := unix.Chmod(at, 0o777); err != nil {
			break
		}
	}
	return dir
}

// Inside a PID namespace of one's own, what is outside is not seen; pids in
// calls are small numbers.
func TestBlockedInPIDNamespace(t *testing.T) {
	for _, c := range []struct {
		mode string
		want []shape
	}{
		{"pid", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"group", []shape{{1, childEnds, []int{1, 2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
		{"pidfd", []shape{{1, childEnds, []int{2}, "", false}, {2, pipeRead, []int{1}, "", false}}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			if !isRoot() {
				t.Skip("needs root to unshare")
			}
			exe := scenario.Build(t, "waits_for_child")
			s := scenario.StartCmd(t, nil, exec.Command("unshare", "--pid", "--net", "--mount-proc", "--fork", "--kill-child", exe, c.mode))
			r := reader(t)
			procs := treeOf(t, r, s.PID)
			procs = procs[1:] // without unshare
			look, _ := r.Waits(context.Background(), procs)
			if diff := cmp.Diff(c.want, shapes(procs, onlyBlocked(procs, look), c.want)); diff != "" {
				t.Errorf("from outside (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("from inside", func(t *testing.T) {
		if !isRoot() {
			t.Skip("needs root to unshare")
		}
		exe, test := scenario.Build(t, "pipe_ends"), testBinary(t)
		script := `mkfifo "$3/in"; "$1" cross <"$3/in" >"$3/out" & exec 9>"$3/in"; until grep -q ready "$3/out"; do sleep 0.05; done
export ` + readAsUser + `=$!; "$2"; exec 9>&-; wait`
		out, err := exec.Command("unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", script, "sh", exe, test, t.TempDir()).Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		v := decodeReading(t, out)
		want := []shape{{1, pipeRead, []int{2}, outsideHere, true}, {2, pipeRead, []int{1}, outsideHere, true}}
		if diff := cmp.Diff(want, shapes(v.Procs, onlyBlocked(v.Procs, v.Waits), want)); diff != "" {
			t.Errorf("from inside (-want +got):\n%s", diff)
		}
	})
}

// The other end of a socket is asked for in the network namespace of the
// process.
func TestBlockedInNetNamespace(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to unshare")
	}
	r := reader(t)
	exe := scenario.Build(t, "socket_ends")
	s := scenario.StartCmd(t, nil, exec.Command("unshare", "--net", exe, "read"))
	procs, waits := blockedIn(t, r, s.PID)
	want := []shape{{1, socketRead, []int{1, 2}, "", false}, {2, socketRead, []int{1, 2}, "", false}}
	if diff := cmp.Diff(want, shapes(procs, waits, want)); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	for _, w := range waits {
		if t.Failed() {
			t.Logf("%+v", w.Blocked)
		}
		if q := w.Blocked.QueuedBytes; q == nil || *q != 0 {
			t.Errorf("queued %v, want 0", q)
		}
	}
}

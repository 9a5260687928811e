package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// deadKinds are the ways to wait for ever, each beside twins that look alike at
// one instant and go on later.
var deadKinds = []struct {
	cause rule.Cause
	dead  [][]string
	twins [][]string
}{
	{rule.LockCycle,
		[][]string{
			{"locks", "normal", "abba"}, {"locks", "recursive", "abba"}, {"locks", "errorcheck", "abba"}, {"locks", "adaptive", "abba"},
			{"locks", "robust", "abba"}, {"locks", "robust-recursive", "abba"},
			{"locks", "pshared", "abba"}, {"locks", "pshared-robust", "abba"},
			{"rwlocks", "writers"}, {"rwlocks", "reader-writer"}, {"rwlocks", "writers", "pshared"},
			{"cycle", "2"}, {"cycle", "3"}, {"cycle", "50"}, {"cycle", "5000"}, {"cycle", "2", "3"}, {"join_cycle"}, {"pshared"}, {"pshared", "3"},
			{"file_locks", "flock", "DIR"}, {"file_locks", "posix", "DIR", "13"},
		},
		[][]string{
			{"locks", "normal", "sleeps"}, {"locks", "normal", "timed"}, {"locks", "normal", "tries"}, {"locks", "recursive", "sleeps"},
			{"locks", "robust", "sleeps"}, {"locks", "robust", "timed"}, {"locks", "pi", "sleeps"}, {"locks", "pi", "timed"}, {"locks", "pshared", "sleeps"}, {"locks", "adaptive", "tries"},
			{"rwlocks", "sleeps"}, {"rwlocks", "reads"}, {"file_locks", "flock-slow", "DIR"}, {"file_locks", "posix-slow", "DIR", "13"}, {"look_alikes"},
			{"misfits", "namespaces"}, {"misfits", "raw-clone"}, {"misfits", "event"},
		}},
	{rule.OrphanedLock, [][]string{{"orphan", "ended"}, {"orphan", "process"}}, [][]string{{"orphan", "lives"}, {"orphan", "handed"}}},
	{rule.ForkLock, [][]string{{"forked", "normal", "waits"}, {"forked", "normal", "sleeps"}}, [][]string{{"forked", "normal", "own"}}},
	{rule.PipeCycle,
		[][]string{{"pipe_ends", "self"}, {"pipe_ends", "self-full"}, {"pipe_ends", "stdout"}, {"pipe_ends", "cross"}, {"pipe_ends", "fifo", "FIFO", "FIFO"}, {"socket_ends", "read"}, {"socket_ends", "full"}, {"socket_ends", "tcp"}, {"waits_for_child", "pid"}, {"waits_for_child", "any"}},
		[][]string{{"pipe_ends", "threads"}, {"pipe_ends", "fifo-self", "FIFO"}, {"pipe_ends", "stdout-slow"}, {"pipe_ends", "cross-slow"}, {"waits_for_child", "sleeps"}, {"waits_for_child", "other"}, {"socket_ends", "timeout"}, {"socket_ends", "read-slow"}, {"socket_ends", "full-slow"},
			{"socket_ends", "tcp-slow"}, {"socket_ends", "tcp-trickle"}, {"socket_ends", "tcp-timeout"}, {"socket_ends", "tcp-self"}}},
}

func TestEveryKindOfWait(t *testing.T) {
	for _, k := range deadKinds {
		for _, args := range k.dead {
			t.Run("dead/"+name(args), func(t *testing.T) {
				t.Parallel()
				o := quick(begin(t, args).PID)
				if args[0] != "join_cycle" && args[0] != "orphan" {
					o.Window = 1500 * time.Millisecond // what is only strong takes the whole window
				}
				j := diagnosed(t, o)
				expect(t, j, rule.Deadlocked, k.cause)
				// Who else holds a pipe or a lock of flock is only sure if the
				// descriptors of every process can be read.
				// And others could yet unlock what has no owner, or cancel a join.
				all := k.cause != rule.PipeCycle && args[0] != "file_locks" && args[0] != "join_cycle" && args[0] != "orphan"
				if j.Strength != rule.Proved && all {
					t.Errorf("only %s: %s", j.Strength, j.Sentence)
				}
				if j.Case.TookMS > 5000 {
					t.Logf("took %.0f ms", j.Case.TookMS)
				}
			})
		}
		for _, args := range k.twins {
			t.Run("twin/"+name(args), func(t *testing.T) {
				t.Parallel()
				if args[len(args)-1] == "namespaces" && os.Geteuid() != 0 {
					t.Skip("only root makes PID namespaces")
				}
				o := quick(begin(t, args).PID)
				o.Window = 700 * time.Millisecond
				j := diagnosed(t, o)
				if j.Verdict == rule.Deadlocked {
					t.Errorf("a program that goes on later: %s (%s) %s", j.Cause, j.Strength, j.Sentence)
				}
				for _, f := range j.Findings {
					if f.Verdict == rule.Deadlocked && f.Strength >= rule.Strong {
						t.Errorf("%s (%s): %s", f.Rule, f.Strength, f.Says)
					}
				}
			})
		}
	}
}

// A server in which nobody is left to wake anybody, and its twin, in which one
// thread waits for connections.
func TestLostWakeup(t *testing.T) {
	for _, passive := range []bool{true, false} {
		o := quick(begin(t, []string{"lost_wakeup"}).PID)
		o.Passive, o.CheckTimeout = passive, 4*time.Second
		j := diagnosed(t, o)
		expect(t, j, rule.Deadlocked, rule.LostWakeup)
		if j.Strength != rule.Strong || len(j.Carried.Culprits) != 1 {
			t.Errorf("passive %v: %s, %+v", passive, j.Strength, j.Carried.Culprits)
		}
	}
	o := quick(begin(t, []string{"idle_http"}).PID)
	o.Passive = true
	expect(t, diagnosed(t, o), rule.Unknown, rule.NotAsked)
}

// Two circles at once are two findings.
func TestTwoCircles(t *testing.T) {
	j := diagnosed(t, quick(begin(t, []string{"cycle", "2", "3"}).PID))
	expect(t, j, rule.Deadlocked, rule.LockCycle)
	var sizes []int
	for _, f := range j.Findings {
		sizes = append(sizes, len(f.Culprits))
	}
	slices.Sort(sizes)
	if !slices.Equal(sizes, []int{2, 3}) {
		t.Errorf("circles of %v threads", sizes)
	}
}

func name(args []string) string {
	s := ""
	for i, a := range args {
		if i > 0 {
			s += " "
		}
		s += a
	}
	return s
}

// begin starts a scenario; DIR is a directory of the test's, FIFO a
// name in one.
func begin(t *testing.T, args []string) *scenario.Process {
	t.Helper()
	cmd := exec.Command(scenario.Build(t, args[0]), args[1:]...)
	for i := range cmd.Args {
		switch cmd.Args[i] {
		case "DIR":
			cmd.Args[i] = t.TempDir()
		case "FIFO":
			cmd.Args[i] = filepath.Join(t.TempDir(), "fifo")
		}
	}
	return scenario.StartCmd(t, nil, cmd)
}

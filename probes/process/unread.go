package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// unread notes that a file of a process could not be read. Files that are gone
// are no news: the process has ended.
func (r *Reader) unread(pid int, file string, err error) (evidence.Unread, bool) {
	if err == nil || isGone(err) {
		return evidence.Unread{}, false
	}
	u := evidence.Unread{What: r.path(pid, file)}
	u.Status, u.Why = probes.Classify(err)
	if isDenied(err) {
		u.Status = evidence.Denied
	}
	return u, true
}

// rightsHint is what to run for the right to read the processes of the server
// with that root process.
func (r *Reader) rightsHint(root int) string {
	pid := strconv.Itoa(root)
	switch scope := r.yamaScope(); {
	case scope != nil && *scope >= 3:
		return "sysctl kernel.yama.ptrace_scope=1 at boot: no process may be traced now"
	case os.Geteuid() != 0:
		return "sudo whyhang " + pid
	}
	// Root without the capability: a container.
	return "docker exec --privileged CONTAINER whyhang " + pid
}

// tally counts what a pass over the processes could not read, for its
// ProbeRun.
type tally struct {
	hint   string
	of     int
	denied map[int][]string // file names by PID
	late   map[int]string
}

func (r *Reader) newTally(procs []evidence.Process) *tally {
	t := &tally{of: len(procs), denied: map[int][]string{}, late: map[int]string{}}
	if len(procs) > 0 {
		t.hint = r.rightsHint(procs[0].PID)
	}
	return t
}

func (t *tally) deny(pid int, file string) {
	if !slices.Contains(t.denied[pid], file) {
		t.denied[pid] = append(t.denied[pid], file)
	}
}

func (t *tally) lateFor(pid int, why string) { t.late[pid] = why }

// run is the outcome of the pass. Denied: no process could be read in full.
func (t *tally) run(name evidence.ProbeName) evidence.ProbeRun {
	run := evidence.ProbeRun{Name: name, Status: evidence.OK}
	var says []string
	if len(t.late) > 0 {
		run.Status = evidence.Partial
		if len(t.late) == t.of {
			run.Status = evidence.Timeout
		}
		for pid, why := range t.late {
			says = append(says, fmt.Sprintf("process %d: %s", pid, why))
		}
		slices.Sort(says)
	}
	if len(t.denied) > 0 {
		run.Status = evidence.Partial
		if len(t.denied) == t.of {
			run.Status = evidence.Denied
		}
		files := map[string]bool{}
		for _, names := range t.denied {
			for _, n := range names {
				files[n] = true
			}
		}
		says = append(says, fmt.Sprintf("permission denied for %s of %d of %d processes",
			strings.Join(sortedKeys(files), ", "), len(t.denied), t.of))
		run.Hint = t.hint
	}
	run.Detail = strings.Join(says, "; ")
	return run
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

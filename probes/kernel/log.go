package kernel

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// logLimit is how long the child may take over the kernel's log.
const logLimit = 5 * time.Second

// deniedHint is the command that shows what may not be read.
const deniedHint = "sudo dmesg -T | grep -i 'killed process'"

// Log reads what the kernel's log says of kills since the tree's root started,
// in a child.
func (r *Reader) Log(ctx context.Context, root *evidence.Process) (*evidence.KernelLog, evidence.ProbeRun) {
	start := time.Now()
	since := time.Duration(min(root.StartTicks, 1<<40)) * (time.Second / 100)
	a, err := r.ask(ctx, logLimit, question{Op: opLog, Path: r.root + "/dev/kmsg", SinceNS: int64(since)})
	run := evidence.ProbeRun{Name: evidence.ProbeKernel, Status: evidence.OK, TookMS: probes.Milliseconds(time.Since(start))}
	if err == nil && a.Log != nil {
		a.Log.SamePIDs = samePIDs(r.proc)
		return a.Log, run
	}
	run.Status, run.Detail = probes.Classify(err)
	run.Detail = "/dev/kmsg: " + run.Detail
	switch _, stuck := errors.AsType[*probes.StuckError](err); {
	case stuck:
		run.Status = evidence.Timeout
	case errors.Is(err, fs.ErrPermission):
		run.Status, run.Hint = evidence.Denied, deniedHint
	case errors.Is(err, fs.ErrNotExist):
		run.Status, run.Hint = evidence.Unsupported, deniedHint+" (on the host)"
	}
	return nil, run
}

// OfTree keeps of a log the kills that concern a tree: of its processes, and of
// those in its memory groups, whose other processes may be gone. What else the
// machine killed is nobody's business here.
func OfTree(log *evidence.KernelLog, procs []evidence.Process, groups []evidence.Cgroup) *evidence.KernelLog {
	if log == nil {
		return nil
	}
	kept := *log
	kept.Kills = nil
	for _, k := range log.Kills {
		ours := slices.ContainsFunc(procs, func(p evidence.Process) bool { return p.PID == k.PID }) ||
			k.Cgroup != "" && k.Cgroup != "/" && slices.ContainsFunc(groups, func(g evidence.Cgroup) bool {
				return g.Path == k.Cgroup && (g.Version == 2 || slices.Contains(g.Controllers, "memory"))
			})
		if ours {
			kept.Kills = append(kept.Kills, k)
		}
	}
	return &kept
}

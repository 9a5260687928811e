package kernel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// frameLimit is how long one look may take. The files are in memory; only a
// lock inside the kernel makes them wait.
const frameLimit = 2 * time.Second

// look is what one look gives.
type look struct {
	frame  *evidence.KernelFrame
	groups []evidence.Cgroup
	unread []evidence.Unread
}

// Frame takes one look at the limits of these processes. groups are all that
// were ever seen, in an order that stays; unread is what could not be read. A
// look that is late is left behind, and none begins while it is under way.
func (r *Reader) Frame(ctx context.Context, procs []evidence.Process) (frame *evidence.KernelFrame, groups []evidence.Cgroup, unread []evidence.Unread, run evidence.ProbeRun) {
	r.mu.Lock()
	busy := r.busy
	r.busy = true
	r.mu.Unlock()
	if busy {
		return nil, nil, nil, evidence.ProbeRun{Name: evidence.ProbeCgroup, Status: evidence.Timeout, Detail: "an earlier look still waits"}
	}
	pids := make([]int, 0, len(procs))
	for i := range procs {
		pids = append(pids, procs[i].PID)
	}
	seen, run := probes.Run(ctx, evidence.ProbeCgroup, frameLimit, func(context.Context) probes.Result[look] {
		defer func() {
			r.mu.Lock()
			r.busy = false
			r.mu.Unlock()
		}()
		return probes.Result[look]{Value: r.look(pids), Run: r.run()}
	})
	return seen.frame, seen.groups, seen.unread, run
}

// look reads all groups. It runs once at a time, so the groups need no lock.
func (r *Reader) look(pids []int) look {
	before := len(r.groups)
	for _, pid := range pids {
		r.join(pid)
	}
	for i := before; i < len(r.groups); i++ {
		r.groups[i].Foreign = r.foreign(&r.groups[i])
	}
	f := &evidence.KernelFrame{Pressure: pressure(func(resource string) string { return r.proc + "/pressure/" + resource })}
	if b, err := readSmall(r.proc + "/meminfo"); err == nil {
		memInfo(b, f)
	}
	if b, err := readSmall(r.proc + "/vmstat"); err == nil {
		vmStat(b, f)
	}
	for i := range r.groups {
		if g, ok := r.groupFrame(i); ok {
			f.Cgroups = append(f.Cgroups, g)
		}
	}
	seen := look{frame: f, unread: slices.Clone(r.unread)}
	for _, g := range r.groups {
		g.PIDs = slices.Clone(g.PIDs)
		seen.groups = append(seen.groups, g)
	}
	return seen
}

// groupFrame reads one group; false if it is gone or shows nothing.
func (r *Reader) groupFrame(i int) (evidence.CgroupFrame, bool) {
	g := &r.groups[i]
	f := evidence.CgroupFrame{Cgroup: i}
	got := false
	read := func(name string) []byte {
		b, err := readSmall(r.root + g.Dir + "/" + name)
		if err != nil {
			return nil // not every kernel and group has every file
		}
		got = true
		return b
	}
	if g.Version == 2 {
		f.Freezer, f.FreezeSelf = freezerEvents(read("cgroup.events"), read("cgroup.freeze"))
		f.QuotaUS, f.PeriodUS = cpuMax(read("cpu.max"))
		cpuStat(read("cpu.stat"), &f)
		f.MemoryLimitBytes, f.MemoryBytes, f.SwapBytes = memoryLimit(read("memory.max")), single(read("memory.current")), single(read("memory.swap.current"))
		f.OOMKills = oomKills(read("memory.events"))
		f.Pressure = pressure(func(resource string) string { return r.root + g.Dir + "/" + resource + ".pressure" })
		return f, got
	}
	if slices.Contains(g.Controllers, "freezer") {
		f.Freezer = freezerState(read("freezer.state"))
		if told := single(read("freezer.self_freezing")); told != nil {
			is := *told != 0
			f.FreezeSelf = &is
		}
	}
	if slices.Contains(g.Controllers, "cpu") {
		f.QuotaUS, f.PeriodUS = single(read("cpu.cfs_quota_us")), single(read("cpu.cfs_period_us"))
		cpuStat(read("cpu.stat"), &f)
	}
	if slices.Contains(g.Controllers, "memory") {
		f.MemoryLimitBytes, f.MemoryBytes = memoryLimit(read("memory.limit_in_bytes")), single(read("memory.usage_in_bytes"))
		// memsw counts memory and swap together.
		if both := single(read("memory.memsw.usage_in_bytes")); both != nil && f.MemoryBytes != nil && *both >= *f.MemoryBytes {
			swap := *both - *f.MemoryBytes
			f.SwapBytes = &swap
		}
		f.OOMKills = oomKills(read("memory.oom_control"))
	}
	return f, got
}

// run says what of the groups could not be read.
func (r *Reader) run() evidence.ProbeRun {
	run := evidence.ProbeRun{Status: evidence.OK}
	if len(r.unread) == 0 {
		return run
	}
	u := r.unread[0]
	run.Status, run.Hint = evidence.Partial, u.Hint
	if len(r.groups) == 0 {
		run.Status = u.Status
	}
	run.Detail = fmt.Sprintf("%s: %s", u.What, u.Why)
	if n := len(r.unread) - 1; n > 0 {
		run.Detail += fmt.Sprintf(" (and %d more)", n)
	}
	return run
}

package process

import (
	"context"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// TreeOptions say what to read of each process.
type TreeOptions struct {
	// Env are names of environment variables to keep; a * at the end stands for
	// any ending.
	Env []string
	// WeightExt are endings of weight files (".safetensors") to know beyond the
	// built-in ones.
	WeightExt []string
}

// describeLimit is how long one process may take: its files are in memory, so
// only a lock makes them wait.
const describeLimit = 3 * time.Second

// maxProcesses bounds the tree.
const maxProcesses = 4096

// Tree finds a process and all its descendants, breadth first, and reads what
// does not move of them. An empty tree means that the root is gone. What could
// not be read stands in the processes' Unread.
func (r *Reader) Tree(ctx context.Context, root int, o TreeOptions) ([]evidence.Process, evidence.ProbeRun) {
	start := time.Now()
	procs := r.describeAll(ctx, root, r.descendants(root), o)
	run := r.treeRun(procs)
	run.TookMS = probes.Milliseconds(time.Since(start))
	return procs, run
}

// One reads what does not move of a single process; false if it is gone.
func (r *Reader) One(ctx context.Context, pid int, o TreeOptions) (evidence.Process, bool) {
	procs := r.describeAll(ctx, pid, []int{pid}, o)
	if len(procs) == 0 {
		return evidence.Process{}, false
	}
	return procs[0], true
}

// Refresh looks for descendants that were born since and appends them. Those
// that are known stay as they are, also when they have ended; but those whose
// name has changed are described anew: they have executed another program, or
// given themselves a title.
func (r *Reader) Refresh(ctx context.Context, known []evidence.Process, o TreeOptions) []evidence.Process {
	if len(known) == 0 {
		return known
	}
	have := map[int]uint64{}
	for _, p := range known {
		have[p.PID] = p.StartTicks
	}
	stats := r.allStats()
	known = r.renamed(ctx, known, stats, o)
	var born []int
	// A child's child is found through the child, which is new itself.
	for {
		before := len(born)
		for pid, s := range stats {
			start, isKnown := have[pid]
			if isKnown && start == s.Start {
				continue
			}
			parent, ok := have[s.PPID]
			if now, lives := stats[s.PPID]; !ok || !lives || now.Start != parent {
				continue
			}
			have[pid] = s.Start
			born = append(born, pid)
		}
		if len(born) == before || len(known)+len(born) >= maxProcesses {
			break
		}
	}
	if len(born) == 0 {
		return known
	}
	slices.SortFunc(born, func(a, b int) int { return byBirth(stats[a], stats[b]) })
	return append(slices.Clip(known), r.describeAll(ctx, known[0].PID, born, o)...)
}

// renamed describes those anew whose name is another than it was.
func (r *Reader) renamed(ctx context.Context, known []evidence.Process, stats map[int]stat, o TreeOptions) []evidence.Process {
	at := map[int]int{}
	var pids []int
	for i, p := range known {
		if s, ok := stats[p.PID]; ok && s.Start == p.StartTicks && s.Comm != p.Name && s.State != 'Z' {
			at[p.PID] = i
			pids = append(pids, p.PID)
		}
	}
	if len(pids) == 0 {
		return known
	}
	known = slices.Clone(known)
	for _, p := range r.describeAll(ctx, known[0].PID, pids, o) {
		i := at[p.PID]
		if p.StartTicks != known[i].StartTicks {
			continue
		}
		KeepFiles(&p, known[i].Files)
		known[i] = p
	}
	return known
}

// allStats reads the stat of every process. One list of all parents is
// complete at its moment; task/*/children is only for a process that is
// stopped (proc_tid_children(5)), and costs a file for each thread.
func (r *Reader) allStats() map[int]stat {
	stats := map[int]stat{}
	dir, err := os.Open(r.dir)
	if err != nil {
		return stats
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	buf := make([]byte, statusFileSize)
	fd := int(dir.Fd())
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		b, err := readAt(fd, name+"/stat", buf)
		if err != nil {
			continue // ended meanwhile, or hidden
		}
		if s, err := parseStat(b); err == nil {
			stats[s.PID] = s
		}
	}
	return stats
}

// descendants lists root and what it has begotten, breadth first, the older
// first.
func (r *Reader) descendants(root int) []int {
	stats := r.allStats()
	children := map[int][]int{}
	for pid, s := range stats {
		children[s.PPID] = append(children[s.PPID], pid)
	}
	for _, c := range children {
		slices.SortFunc(c, func(a, b int) int { return byBirth(stats[a], stats[b]) })
	}
	// A process hidden from the list can still be named.
	if _, ok := stats[root]; !ok {
		if _, err := readAt(unix.AT_FDCWD, r.path(root, "stat"), make([]byte, statusFileSize)); err != nil {
			return nil
		}
	}
	all := []int{root}
	for i := 0; i < len(all) && len(all) < maxProcesses; i++ {
		for _, c := range children[all[i]] {
			if !slices.Contains(all, c) { // a hand-made /proc may hold a circle
				all = append(all, c)
			}
		}
	}
	return all
}

func byBirth(a, b stat) int {
	if a.Start != b.Start {
		if a.Start < b.Start {
			return -1
		}
		return 1
	}
	return a.PID - b.PID
}

// described is a process and what it takes to look at its files.
type described struct {
	process evidence.Process
	via     int
	ok      bool
}

// describeAll reads the static facts of processes of the tree below root,
// first those that no lock can delay, then those in memory, then the files.
func (r *Reader) describeAll(ctx context.Context, root int, pids []int, o TreeOptions) []evidence.Process {
	plain := each(ctx, len(pids), describeLimit, func(i int) described {
		p, via, ok := r.describe(pids[i])
		return described{p, via, ok}
	})
	plain = slices.DeleteFunc(plain, func(a answer[described]) bool { return !a.Value.ok })
	inMemory := each(ctx, len(plain), describeLimit, func(i int) memoryFacts {
		if d := plain[i].Value; d.process.State != "Z" && d.process.State != "X" {
			return r.memoryFacts(d.process.PID, d.via, o)
		}
		return memoryFacts{}
	})
	sizes, versions := map[string]uint64{}, map[string]string{}
	procs := make([]evidence.Process, len(plain))
	for i, d := range plain {
		p, m := &procs[i], inMemory[i].Value
		*p = d.Value.process
		if !inMemory[i].Done {
			p.Unread = append(p.Unread, evidence.Unread{What: r.path(p.PID, "{cmdline,environ,fd,maps}"),
				Status: evidence.Timeout, Why: inMemory[i].Why})
		}
		p.Argv, p.Env, p.Libraries, p.Files = m.argv, m.env, m.libraries, m.files
		p.Unread = append(p.Unread, m.unread...)
		r.fillSizes(ctx, p, m.places, sizes, o.WeightExt)
		r.fillLibc(ctx, p, m, versions)
		for n := range p.Unread {
			if p.Unread[n].Status == evidence.Denied {
				p.Unread[n].Hint = r.rightsHint(root)
			}
		}
	}
	return procs
}

// fillLibc names the C library, asking once for each file.
func (r *Reader) fillLibc(ctx context.Context, p *evidence.Process, m memoryFacts, known map[string]string) {
	switch {
	case m.libc == nil:
	case m.musl:
		p.Libc = "musl"
	default:
		key := p.MntNS + m.libc.Device + m.libc.Path
		v, ok := known[key]
		if !ok {
			v, _ = r.files.libcVersion(ctx, m.libc, m.libcPlace)
			known[key] = v
		}
		p.Libc = "glibc"
		if v != "" {
			p.Libc += " " + v
		}
	}
}

// treeRun sums up what could not be read.
func (r *Reader) treeRun(procs []evidence.Process) evidence.ProbeRun {
	if len(procs) == 0 {
		return evidence.ProbeRun{Name: evidence.ProbeProcess, Status: evidence.Failed, Detail: "no such process"}
	}
	t := r.newTally(procs)
	for _, p := range procs {
		for _, u := range p.Unread {
			switch u.Status {
			case evidence.Denied:
				t.deny(p.PID, path.Base(u.What))
			default:
				t.lateFor(p.PID, u.What+": "+u.Why)
			}
		}
	}
	run := t.run(evidence.ProbeProcess)
	if run.Status == evidence.Denied {
		run.Status = evidence.Partial // who is there was seen
	}
	return run
}

package kernel

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Bounds: a container has a handful of groups, and each costs some ten files
// in every look.
const (
	maxGroups = 64
	maxDepth  = 32
)

// join puts a process into its groups, and into those above them. Version 1
// shows "/" for a process that has ended: it stays where it was seen before.
func (r *Reader) join(pid int) {
	proc, err := r.fs.Proc(pid)
	if err != nil {
		return // ended
	}
	lines, err := proc.Cgroups()
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.note(r.path(pid, "cgroup"), err)
		}
		return
	}
	for i := range lines {
		g := &lines[i]
		if g.HierarchyID != 0 && !slices.ContainsFunc(g.Controllers, func(c string) bool { return slices.Contains(controllersKnown, c) }) {
			continue
		}
		r.joinGroup(pid, g)
	}
}

// joinGroup finds the directory of a group in the first mount that shows it.
func (r *Reader) joinGroup(pid int, g *procfs.Cgroup) {
	why := errNoMounted
	for i := range r.mounts {
		m := &r.mounts[i]
		if !m.carries(g) {
			continue
		}
		rest, err := m.below(strings.TrimSuffix(g.Path, " (deleted)"))
		if err != nil {
			why = err
			continue
		}
		if _, err := os.Stat(r.root + m.point + "/" + rest); err != nil {
			why = err
			continue
		}
		r.joinUp(pid, m, rest)
		return
	}
	r.note("control group "+g.Path+" ("+hierarchy(g)+")", why)
}

// joinUp adds the process to the group and to all above it in the mount.
func (r *Reader) joinUp(pid int, m *cgroupMount, rest string) {
	for depth := 0; depth < maxDepth; depth++ {
		dir := strings.TrimSuffix(m.point+"/"+rest, "/")
		n, known := r.byDir[dir]
		if !known {
			if len(r.groups) >= maxGroups {
				return
			}
			n = len(r.groups)
			r.byDir[dir] = n
			path := strings.TrimSuffix(m.root, "/") + "/" + rest
			if rest == "" && m.root != "/" {
				path = m.root
			}
			r.groups = append(r.groups, evidence.Cgroup{Version: m.version, Controllers: m.controllers, Path: path, Dir: dir})
		}
		if !slices.Contains(r.groups[n].PIDs, pid) {
			r.groups[n].PIDs = append(r.groups[n].PIDs, pid)
		}
		if rest == "" {
			return
		}
		up := strings.LastIndexByte(rest, '/')
		rest = rest[:max(0, up)]
	}
}

// foreign counts the processes directly in a group that are not of the tree;
// nil if they cannot be listed, or some of them not be named.
func (r *Reader) foreign(g *evidence.Cgroup) *int {
	b, err := readSmall(r.root + g.Dir + "/cgroup.procs")
	if err != nil || len(b) == smallFile {
		return nil
	}
	n := 0
	for line := range bytes.Lines(b) {
		// 0 stands for a process that our PID namespace does not know.
		pid, ok := number(bytes.TrimSpace(line))
		if ok && !slices.Contains(g.PIDs, int(pid)) {
			n++
		}
	}
	return &n
}

func hierarchy(g *procfs.Cgroup) string {
	if len(g.Controllers) == 0 {
		return "v2"
	}
	return strings.Join(g.Controllers, ",")
}

// note takes down once what could not be read.
func (r *Reader) note(what string, err error) {
	if r.noted[what] || len(r.noted) >= 2*maxGroups {
		return
	}
	r.noted[what] = true
	u := evidence.Unread{What: what}
	u.Status, u.Why = probes.Classify(err)
	switch {
	case errors.Is(err, errOutside), errors.Is(err, errNoMounted):
		u.Status, u.Hint = evidence.Unsupported, "run whyhang on the host, by the PID there"
	case errors.Is(err, fs.ErrPermission):
		u.Hint = "sudo whyhang PID"
	}
	r.unread = append(r.unread, u)
}

package process

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// describe reads what does not move of a process, without touching its memory:
// none of these files waits for the process's own locks.
func (r *Reader) describe(pid int) (p evidence.Process, via int, ok bool) {
	buf := make([]byte, statusFileSize)
	leader, err := readStat(r.base(pid, 0), buf)
	if err != nil {
		return p, 0, false
	}
	via, speaker, lives := r.alive(pid, leader)
	p = evidence.Process{
		PID: pid, PPID: leader.PPID, StartTicks: leader.Start, Started: r.started(leader.Start),
		Name: leader.Comm, State: string(speaker.State), UID: -1, LeaderExited: lives && via != pid,
		Kernel: leader.isKernelThread(),
	}
	if st, err := readStatus(r.base(pid, via), buf); err == nil {
		p.UID, p.NSPID, p.TracerPID = st.UID, st.NSPID, st.TracerPID
	}
	if p.LeaderExited { // a thread's own IDs are not the process's
		if st, err := readStatus(r.base(pid, 0), buf); err == nil {
			p.NSPID = st.NSPID
		}
	}
	if p.TracerPID != 0 {
		if tracer, err := readStat(r.base(p.TracerPID, 0), buf); err == nil {
			p.TracerName = tracer.Comm
		}
	}
	proc, err := r.proc(pid, via)
	if err != nil {
		return p, via, false
	}
	if groups, err := proc.Cgroups(); err == nil {
		p.Cgroup, p.Container = cgroupOf(groups)
	}
	if !lives {
		p.WaitStatus = r.waitStatus(pid, leader)
		return p, via, true
	}
	r.describeLinks(&p, via, proc)
	return p, via, true
}

// describeLinks reads the links that need the right to read the process.
// readlink asks no file system.
func (r *Reader) describeLinks(p *evidence.Process, via int, proc procfs.Proc) {
	note := func(file string, err error) {
		if u, ok := r.unread(p.PID, file, err); ok {
			p.Unread = append(p.Unread, u)
		}
	}
	var err error
	if p.Exe, err = proc.Executable(); err != nil {
		note("exe", err)
	}
	if p.Cwd, err = proc.Cwd(); err != nil {
		note("cwd", err)
	}
	for _, ns := range []struct {
		name string
		to   *string
	}{{"net", &p.NetNS}, {"pid", &p.PIDNS}, {"mnt", &p.MntNS}} {
		if *ns.to, err = os.Readlink(r.base(p.PID, via) + "/ns/" + ns.name); err != nil {
			note("ns/"+ns.name, err)
		}
	}
	// Whether the threads' system calls may be read is a right of its own;
	// one thread tells for all.
	if tasks, err := openTasks(r.dir, p.PID); err == nil {
		_, err = tasks.readSyscall(strconv.Itoa(via), false)
		note("task/*/syscall", err)
		tasks.close()
	}
	_, err = readAt(unix.AT_FDCWD, r.path(p.PID, "io"), make([]byte, statusFileSize))
	note("io", err)
}

// containerID is how Docker, containerd, CRI-O and Podman name the control
// group of a container.
var containerID = regexp.MustCompile(`(?:^|[^0-9a-f])([0-9a-f]{64})(?:[^0-9a-f]|$)`)

// cgroupOf picks the path of the unified hierarchy, of the memory hierarchy if
// that is all there is or says more, and the container ID of any.
func cgroupOf(groups []procfs.Cgroup) (cgroup, container string) {
	var unified, memory string
	for _, g := range groups {
		if m := containerID.FindStringSubmatch(g.Path); m != nil && container == "" {
			container = m[1]
		}
		switch {
		case g.HierarchyID == 0:
			unified = g.Path
		case slices.Contains(g.Controllers, "memory"):
			memory = g.Path
		}
	}
	if unified == "" || unified == "/" && memory != "" {
		return memory, container
	}
	return unified, container
}

// fdLinks reads where the descriptors of a process lead, in numeric order, at
// most maxDescriptors of them.
func fdLinks(dir string, see func(fd int, target string)) error {
	f, err := os.Open(dir + "/fd")
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxDescriptors)
	if err != nil && len(names) == 0 {
		if err.Error() == "EOF" {
			return nil
		}
		return err
	}
	fds := make([]int, 0, len(names))
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil {
			fds = append(fds, fd)
		}
	}
	slices.Sort(fds)
	for _, fd := range fds {
		// Closed meanwhile: no news.
		if target, err := os.Readlink(dir + "/fd/" + strconv.Itoa(fd)); err == nil {
			see(fd, strings.TrimSuffix(target, " (deleted)"))
		}
	}
	return nil
}

// maxDescriptors bounds how many descriptors of one process are looked at; a
// server with more holds sockets in them.
const maxDescriptors = 16384

// fdPosition reads the offset of a descriptor; nil if it is closed meanwhile.
func fdPosition(proc procfs.Proc, fd int) *uint64 {
	info, err := proc.FDInfo(strconv.Itoa(fd))
	if err != nil {
		return nil
	}
	pos, err := strconv.ParseUint(info.Pos, 10, 64)
	if err != nil {
		return nil
	}
	return &pos
}

// isFilePath tells links to files from "socket:[1]", "pipe:[2]", "anon_inode:".
func isFilePath(target string) bool { return path.IsAbs(target) }

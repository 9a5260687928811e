package process

import (
	"bytes"
	"strconv"

	"golang.org/x/sys/unix"
)

// relative is a process as a parent or tracer knows it.
type relative struct {
	pid, parent, tracer int
	// nsPID and nsGroup are its ID and that of its group in each PID namespace,
	// that of this /proc first.
	nsPID, nsGroup []int
	zombie         bool
}

// parseRelative reads /proc/PID/status (proc_pid_status(5)); false if a line
// that it takes is missing.
func parseRelative(b []byte) (relative, bool) {
	var p relative
	var found int
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		words := bytes.Fields(value)
		if len(words) == 0 {
			continue
		}
		switch string(name) {
		case "State":
			p.zombie = words[0][0] == 'Z' || words[0][0] == 'X'
			found++
		case "Pid":
			p.pid = smallNumber(words[0])
			found++
		case "PPid":
			p.parent = smallNumber(words[0])
			found++
		case "TracerPid":
			p.tracer = smallNumber(words[0])
			found++
		case "NSpid":
			p.nsPID = smallNumbers(words)
		case "NSpgid":
			p.nsGroup = smallNumbers(words)
		}
	}
	return p, found == 4
}

func smallNumber(b []byte) int {
	if n, ok := number(b); ok && n < 1<<31 {
		return int(n)
	}
	return 0
}

func smallNumbers(words [][]byte) []int {
	var all []int
	for _, w := range words[:min(len(words), maxNamespaces)] {
		all = append(all, smallNumber(w))
	}
	return all
}

// at is an ID in the PID namespace of a process that is depth namespaces deep,
// 0 if it has none there.
func at(ids []int, depth int) int {
	if depth < 1 || depth > len(ids) {
		return 0
	}
	return ids[depth-1]
}

// relatives reads the status of every process.
func (r *Reader) relatives() map[int]relative {
	all := map[int]relative{}
	buf := make([]byte, statusFileSize)
	for _, pid := range r.pids() {
		b, err := readAt(unix.AT_FDCWD, r.path(pid, "status"), buf)
		if err != nil {
			continue // ended meanwhile, or hidden
		}
		p, ok := parseRelative(b)
		if !ok || p.pid != pid {
			continue
		}
		if p.zombie {
			// A first thread that has ended is not waited for while others live.
			if st, err := readStat(r.base(pid, 0), buf); err == nil {
				_, _, lives := r.alive(pid, st)
				p.zombie = !lives
			}
		}
		if p.tracer != 0 { // a thread; its process is meant
			if st, err := readStatus(r.base(p.tracer, 0), buf); err == nil {
				p.tracer = st.Tgid
			}
		}
		all[pid] = p
	}
	return all
}

// childWait is what a call waits for.
type childWait struct {
	all        bool // any child
	pid, group int  // as the caller's PID namespace counts
	pidfd      int
	ends       bool // for the end of a child, not for its stop or continuation
}

// childWaitOf reads wait4(pid, status, options, usage) and waitid(type, id,
// info, options, usage); false if the arguments make no sense (wait(2)). A
// group of 0 is the caller's own.
func childWaitOf(c call) (childWait, bool) {
	w := childWait{pidfd: -1, group: -1, ends: true}
	if c.Number == unix.SYS_WAIT4 {
		switch pid := int(int32(uint32(c.Args[0]))); {
		case pid == -1:
			w.all = true
		case pid > 0:
			w.pid = pid
		default:
			w.group = -pid
		}
		return w, true
	}
	id := int(int32(uint32(c.Args[1])))
	w.ends = c.Args[3]&unix.WEXITED != 0
	switch uint32(c.Args[0]) {
	case unix.P_ALL:
		w.all = true
	case unix.P_PID:
		w.pid = id
	case unix.P_PGID:
		w.group = id
	case unix.P_PIDFD:
		w.pidfd = id
	default:
		return w, false
	}
	return w, true
}

// children finds the children each call waits for. wait(2) takes those of all
// threads of the process; __WNOTHREAD, which takes fewer, is not looked at.
func (r *Reader) children(waits []*blockedWait) {
	all := r.relatives()
	born := map[int][]int{} // by parent
	for pid, p := range all {
		born[p.parent] = append(born[p.parent], pid)
	}
	for _, w := range waits {
		want, ok := childWaitOf(w.call)
		self := all[w.pid]
		switch {
		case !ok || self.pid == 0:
			w.unsure("whom it waits for is not known")
			continue
		case !want.ends:
			w.unsure("it waits for a child to be stopped or continued, which anybody may do")
		}
		if want.pidfd >= 0 {
			if want.pid = r.pidOfPIDFD(w, want.pidfd); want.pid == 0 {
				w.unsure("whom the descriptor of its call stands for is not known")
				continue
			}
			w.child(all[want.pid])
		}
		depth := len(self.nsPID)
		for _, p := range all {
			if p.tracer == w.pid {
				w.unsure("it traces a process, whose stops it waits for, too")
			}
			if p.parent != w.pid || want.pidfd >= 0 {
				continue
			}
			mine := want.group
			if mine == 0 {
				mine = at(self.nsGroup, depth)
			}
			if want.all || want.pid > 0 && at(p.nsPID, depth) == want.pid || want.pid == 0 && mine > 0 && at(p.nsGroup, depth) == mine {
				w.child(p)
			}
		}
		if len(w.b.Wakers) == 0 {
			w.unsure("the child it waits for is not seen")
		}
		if want.pid == 0 {
			w.anyChild(born)
		}
	}
}

// child adds a child; the wait for one that has ended is about to end.
func (w *blockedWait) child(p relative) {
	switch {
	case p.pid == 0 || p.zombie:
		w.unsure("the child has ended, so the wait is about to end")
	default:
		w.waker(p.pid, -1)
	}
}

// anyChild adds those who can give the process another child that ends at once:
// itself, and every descendant, as the children of one that ends become those of
// a subreaper (PR_SET_CHILD_SUBREAPER, which cannot be seen from outside) or of
// the first process of a PID namespace.
func (w *blockedWait) anyChild(born map[int][]int) {
	w.waker(w.pid, -1)
	seen := map[int]bool{w.pid: true}
	for queue := []int{w.pid}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range born[queue[0]] {
			if !seen[pid] {
				seen[pid] = true
				queue = append(queue, pid)
				w.waker(pid, -1)
			}
		}
	}
}

// pidOfPIDFD is the process that a pidfd of the waiting thread stands for: 0 if
// it has ended or is not seen. fdinfo gives its ID in the namespace of /proc.
func (r *Reader) pidOfPIDFD(w *blockedWait, fd int) int {
	b, err := readAt(unix.AT_FDCWD, r.base(w.pid, 0)+"/task/"+strconv.Itoa(w.tid)+"/fdinfo/"+strconv.Itoa(fd), make([]byte, statusFileSize))
	if err != nil {
		return 0
	}
	return parseFDInfo(b).PID
}

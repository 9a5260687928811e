package process

import (
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// pipe takes a wait for one at a pipe. That it is empty, or full, is not read:
// FIONREAD would need an open descriptor, and with that whyhang would be one
// of its ends for a moment. A thread that sleeps in the kernel's pipe_read or
// pipe_write says it: they sleep for nothing else (pipe(7)).
func (r *Reader) pipe(w *blockedWait, scan *descriptorScan) {
	w.b.Kind = pipeKind(w.b.Kind)
	w.inode, _ = inodeOf(w.b.Object, "pipe")
	scan.links[w.b.Object] = true
	switch where := r.wchan(w.pid, w.tid); {
	case where == "":
		w.doubt("the kernel does not say in which function it sleeps")
	case !sleepsInPipe(where):
		w.unsure("it sleeps in " + where + ", not for the pipe")
	}
}

// fifo takes a wait at a path for one at a FIFO if the kernel says so. All
// other files that can be slept on have ends that cannot be named.
//
// A FIFO has a name: any process may open it and write a line into it, as one
// does to daemons that read commands from one. Also a deleted one may have
// another name left.
func (r *Reader) fifo(w *blockedWait, scan *descriptorScan) {
	if !sleepsInPipe(r.wchan(w.pid, w.tid)) {
		w.other("the other end of a file or device cannot be named")
		return
	}
	w.b.Kind = pipeKind(w.b.Kind)
	w.inode = w.info.Inode
	scan.names[string(baseName([]byte(w.b.Object)))] = true
	w.doubt("any process may open a FIFO by its name")
	if w.inode == 0 {
		w.doubt("this kernel does not tell which descriptors lead to the same FIFO")
	}
}

// sleepsInPipe knows anon_pipe_read, fifo_pipe_write and so on (Linux 6.15),
// pipe_read (5.5), pipe_wait (before).
func sleepsInPipe(wchan string) bool {
	return strings.Contains(wchan, "pipe_read") || strings.Contains(wchan, "pipe_write") || strings.Contains(wchan, "pipe_wait")
}

// pipeKind is the kind of wait at a pipe: recv and send do not work on one.
func pipeKind(k evidence.BlockKind) evidence.BlockKind {
	if k == evidence.BlockPipeRead || k == evidence.BlockSocketRead {
		return evidence.BlockPipeRead
	}
	return evidence.BlockPipeWrite
}

// pipeWakers are the processes that hold the other end, the waiting one
// included if it does.
func (s *descriptorScan) pipeWakers(w *blockedWait) {
	if len(w.gaps) > 0 && w.inode == 0 {
		return // not known what it is
	}
	holdings := s.found[w.b.Object]
	if w.b.Object != "" && w.b.Object[0] == '/' {
		holdings = s.byName[string(baseName([]byte(w.b.Object)))]
	}
	for _, h := range holdings {
		if h.info.Inode != w.inode && h.link != w.b.Object {
			continue
		}
		if w.b.Kind == evidence.BlockPipeRead && h.info.writes() || w.b.Kind == evidence.BlockPipeWrite && h.info.reads() {
			w.waker(h.pid, h.fd)
		}
	}
	if len(w.b.Wakers) == 0 {
		// A pipe without the other end lets nobody sleep (pipe(7)).
		w.unsure("who holds the other end is not seen")
	}
	w.scanned = true
}

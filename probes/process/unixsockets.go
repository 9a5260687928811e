package process

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// unixSockets finds the other end of each socket that is waited at, and gives
// back those that are no unix sockets.
//
// A socket with a time-out ends its waits by itself.
func unixSockets(r *Reader, waits []*blockedWait, scan *descriptorScan) (rest []*blockedWait) {
	own, _ := os.Readlink("/proc/thread-self/ns/net")
	open := map[string]diag{}
	defer func() {
		for _, d := range open {
			if d.err == nil {
				unix.Close(d.fd)
			}
		}
	}()
	for _, w := range waits {
		d, ok := open[w.netNS]
		if !ok {
			d = diagFor(r, w, own)
			open[w.netNS] = d
		}
		if d.err != nil {
			w.unsure("the sockets of its network namespace cannot be asked for: " + d.err.Error())
			continue
		}
		inode, ok := inodeOf(w.b.Object, "socket")
		if !ok || inode>>32 != 0 {
			w.other("the socket has an inode that cannot be asked for")
			continue
		}
		s, err := askUnix(d.fd, uint32(inode))
		switch {
		case errors.Is(err, errNoUnixSocket) && !diagWorks():
			w.unsure("this kernel does not tell the other end of unix sockets (unix_diag)")
		case errors.Is(err, errNoUnixSocket):
			rest = append(rest, w)
		case err != nil:
			w.unsure("the other end of the socket could not be asked for: " + err.Error())
		default:
			w.unixSocket(s, scan)
		}
	}
	return rest
}

// diag is a socket for questions, or why there is none.
type diag struct {
	fd  int
	err error
}

func diagFor(r *Reader, w *blockedWait, own string) (d diag) {
	switch w.netNS {
	case "":
		d.err = errors.New("the namespace is not known")
	case own:
		d.fd, d.err = openDiag()
	default:
		// The waiting thread lives: it is asleep.
		d.fd, d.err = openDiagIn(r.base(w.pid, 0) + "/task/" + strconv.Itoa(w.tid) + "/ns/net")
	}
	return d
}

// unixSocket fills in what the kernel tells of the socket.
func (w *blockedWait) unixSocket(s unixSocket, scan *descriptorScan) {
	w.inode, w.peer = uint64(s.Inode), uint64(s.Peer)
	reading := w.b.Kind == evidence.BlockPipeRead || w.b.Kind == evidence.BlockSocketRead
	w.b.Kind = evidence.BlockSocketWrite
	queued := s.WrittenBytes
	if reading {
		w.b.Kind, queued = evidence.BlockSocketRead, s.ReadBytes
	}
	if queued != nil {
		n := uint64(*queued)
		w.b.QueuedBytes = &n
	}
	switch limit, err := socketTimeout(w.pid, w.b.FD, reading); {
	case err != nil:
		w.unsure("whether the socket has a time-out cannot be seen: " + err.Error())
	case limit > 0:
		w.unsure("the socket has a time-out of " + limit.String())
	}
	switch {
	case s.Peer == 0:
		w.unsure("the socket is not connected: anybody may send to it")
	case s.Type == unix.SOCK_DGRAM && !reading:
		// Its buffer may hold what it sent elsewhere.
		w.unsure("a datagram socket may have been used to send to others")
	}
	scan.links[socketLink(w.inode)] = true
	scan.links[socketLink(w.peer)] = true
}

func socketLink(inode uint64) string { return "socket:[" + strconv.FormatUint(inode, 10) + "]" }

// socketWakers are the processes that hold the other end, and those that hold
// the waited-at end: each may shut it down, which ends the wait (shutdown(2)).
// For the latter, the waiting process too, no descriptor is given.
func (s *descriptorScan) socketWakers(w *blockedWait) {
	if w.inode == 0 {
		return // not known what it is
	}
	if w.peer != 0 {
		for _, h := range s.found[socketLink(w.peer)] {
			w.waker(h.pid, h.fd)
		}
		if len(w.b.Wakers) == 0 {
			w.unsure("who holds the other end is not seen")
		}
	}
	for _, h := range s.found[socketLink(w.inode)] {
		w.waker(h.pid, -1)
	}
	w.scanned = true
}

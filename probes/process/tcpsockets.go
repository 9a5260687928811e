package process

import (
	"errors"
	"strconv"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/socket"
)

// tcpSockets finds the other end of TCP connections that are waited at and do
// not leave the machine: both ends are in the tables of one network namespace.
// What one end has not sent, the other cannot receive, so that whoever holds
// the ends can end the wait and nobody else. A connection to another host, or
// through a translated address, has an end that cannot be named.
//
// Only waits to receive are followed: one that is full may empty by itself, as
// the kernel moves what lies in its buffers.
func tcpSockets(r *Reader, waits []*blockedWait, scan *descriptorScan) {
	byNamespace := map[string][]*blockedWait{}
	for _, w := range waits {
		byNamespace[w.netNS] = append(byNamespace[w.netNS], w)
	}
	for _, group := range byNamespace {
		inodes := map[uint64]bool{}
		for _, w := range group {
			if inode, ok := inodeOf(w.b.Object, "socket"); ok {
				inodes[inode] = true
			}
		}
		// The waiting thread lives: it is asleep.
		dir := r.base(group[0].pid, 0) + "/task/" + strconv.Itoa(group[0].tid) + "/net"
		pairs, why, err := socket.Pairs(dir, inodes)
		for _, w := range group {
			inode, _ := inodeOf(w.b.Object, "socket")
			switch pair, ok := pairs[inode]; {
			case err != nil:
				w.other("the sockets of its network namespace could not be read: " + err.Error())
			case errors.Is(why[inode], socket.ErrNoTCP):
				w.other("the socket is neither a unix nor a TCP socket of its network namespace")
			case !ok:
				w.other(why[inode].Error())
			default:
				w.tcpSocket(inode, pair, scan)
			}
		}
	}
}

// tcpSocket fills in what the tables tell of a connection.
func (w *blockedWait) tcpSocket(inode uint64, pair socket.Pair, scan *descriptorScan) {
	w.b.Connection = pair.Local + " to " + pair.Remote
	if w.b.Kind != evidence.BlockPipeRead && w.b.Kind != evidence.BlockSocketRead {
		w.other("what a TCP connection holds may yet be moved on by the kernel")
		return
	}
	w.b.Kind = evidence.BlockSocketRead
	w.inode, w.peer = inode, pair.Peer
	queued := uint64(pair.RxBytes)
	w.b.QueuedBytes = &queued
	if pair.PeerTxBytes > 0 {
		w.unsure("the other end has sent what has not arrived")
	}
	switch limit, err := socketTimeout(w.pid, w.b.FD, true); {
	case err != nil:
		w.unsure("whether the socket has a time-out cannot be seen: " + err.Error())
	case limit > 0:
		w.unsure("the socket has a time-out of " + limit.String())
	}
	scan.links[socketLink(w.inode)] = true
	scan.links[socketLink(w.peer)] = true
}

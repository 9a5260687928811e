package socket

import (
	"errors"
	"net/netip"
)

// Pair is a TCP connection of which both ends are in one network namespace.
type Pair struct {
	Local, Remote string
	// Peer is the inode of the other end.
	Peer uint64
	// RxBytes were received and not read by this end; PeerTxBytes were sent by
	// the other end and have not arrived yet.
	RxBytes, PeerTxBytes int
}

// Why a connection has no known other end here.
var (
	ErrNoTCP     = errors.New("the socket is no TCP connection of its network namespace")
	ErrElsewhere = errors.New("the other end of the TCP connection is outside this network namespace")
	ErrHalfOpen  = errors.New("an end of the TCP connection is closed or not yet open")
	ErrTwoPeers  = errors.New("two sockets could be the other end of the TCP connection")
	ErrTooMany   = errors.New("the network namespace has more TCP sockets than are read")
)

// Pairs finds the other ends of TCP sockets, given by inode, in the tables of a
// directory such as /proc/PID/net. The ends of a connection have each other's
// addresses; the error of a socket for which that does not name exactly one
// other says why. err is for tables that could not be read.
//
// An address that was translated on its way (NAT) matches nothing. A proxy that
// takes on the addresses of others (IP_TRANSPARENT) makes two that match.
func Pairs(dir string, inodes map[uint64]bool) (map[uint64]Pair, map[uint64]error, error) {
	var own []row
	byEnds := map[ends][]row{}
	t, err := eachRow(dir, bothTables, func(r *row) {
		if r.state == stateListen {
			return
		}
		if inodes[r.inode] && r.inode != 0 {
			own = append(own, *r)
		}
		// An IPv6 socket may speak IPv4: the ends then stand in two tables.
		byEnds[endsOf(r)] = append(byEnds[endsOf(r)], *r)
	})
	if err != nil {
		return nil, nil, err
	}
	pairs, why := map[uint64]Pair{}, map[uint64]error{}
	for inode := range inodes {
		why[inode] = ErrNoTCP
	}
	for _, r := range own {
		at := endsOf(&r)
		peers := byEnds[at.swapped()]
		delete(why, r.inode)
		switch {
		case len(peers) > 1, len(byEnds[at]) > 1:
			why[r.inode] = ErrTwoPeers
		case t.cut:
			why[r.inode] = ErrTooMany
		case len(peers) == 0 || peers[0].inode == r.inode:
			why[r.inode] = ErrElsewhere
		case r.state != stateEstablished || peers[0].state != stateEstablished || peers[0].inode == 0:
			why[r.inode] = ErrHalfOpen
		default:
			pairs[r.inode] = Pair{Local: readable(r.local), Remote: readable(r.remote), Peer: peers[0].inode,
				RxBytes: r.rx, PeerTxBytes: peers[0].tx}
		}
	}
	return pairs, why, nil
}

// ends are the addresses of a connection, an IPv4 address in an IPv6 row as IPv4.
type ends struct{ local, remote netip.AddrPort }

func endsOf(r *row) ends { return ends{plain(r.local), plain(r.remote)} }

func (e ends) swapped() ends { return ends{e.remote, e.local} }

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

package socket

import (
	"net/netip"

	"github.com/whyhang/whyhang/probes/evidence"
)

// inbound finds which listener of the tree a connection came in through.
type inbound struct {
	exact map[listenKey]uint64 // listener inode
	// any are listeners on all addresses, by table and port.
	any map[listenKey]uint64
}

// listenKey has the zero address for listeners on all addresses.
type listenKey struct {
	network string
	local   netip.AddrPort
}

// treeListeners are the TCP listeners that count as the tree's.
func treeListeners(list []evidence.Listener) inbound {
	in := inbound{exact: map[listenKey]uint64{}, any: map[listenKey]uint64{}}
	for _, l := range list {
		if !ofTree(l) || l.Network == "unix" {
			continue
		}
		at, err := netip.ParseAddrPort(l.Address)
		if err != nil {
			continue
		}
		if at.Addr().IsUnspecified() {
			in.any[listenKey{l.Network, netip.AddrPortFrom(netip.Addr{}, at.Port())}] = l.Inode
		} else {
			in.exact[listenKey{l.Network, at}] = l.Inode
		}
	}
	return in
}

func ofTree(l evidence.Listener) bool {
	return l.Owner == evidence.OwnerDescriptor || l.Owner == evidence.OwnerUser
}

// of is the listener of a connection. What a listener accepts stands in the
// same table as the listener itself, also when an IPv6 one accepts IPv4.
func (in inbound) of(r *row) (inode uint64, ok bool) {
	local := netip.AddrPortFrom(r.local.Addr().Unmap().WithZone(""), r.local.Port())
	if inode, ok = in.exact[listenKey{r.network, local}]; ok {
		return inode, true
	}
	inode, ok = in.any[listenKey{r.network, netip.AddrPortFrom(netip.Addr{}, r.local.Port())}]
	return inode, ok
}

// waiting says whether nobody has accepted a connection yet. A socket that was
// accepted and closed has no inode either, but is then past these states.
func waiting(r *row) bool {
	return r.inode == 0 && (r.state == stateEstablished || r.state == stateCloseWait)
}

package socket

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxEndpoints bounds how many addresses are looked at.
const maxEndpoints = 32

// Endpoints says of addresses (host:port) whether they belong to the network
// namespace that s was read in, and whether somebody listens there now. It reads
// tables only; nothing is sent and no name is resolved.
func Endpoints(procDir string, s *evidence.Sockets, addresses []string) []evidence.Endpoint {
	if s == nil || s.PID == 0 || len(addresses) == 0 {
		return nil
	}
	dir := filepath.Join(processDir(procDir, s.PID), "net")
	own, ownKnown := ownAddresses(dir)
	var listening []row
	t, err := eachRow(dir, bothTables, func(r *row) {
		if r.state == stateListen {
			listening = append(listening, *r)
		}
	})
	held := map[uint64]int{}
	for _, l := range s.Listeners {
		if ofTree(l) {
			held[l.Inode] = l.PID
		}
	}
	var list []evidence.Endpoint
	for _, address := range addresses[:min(len(addresses), maxEndpoints)] {
		e := evidence.Endpoint{Address: address}
		at, ok := numeric(address)
		if !ok {
			list = append(list, e) // a name
			continue
		}
		switch local := at.Addr().IsLoopback() || at.Addr().IsUnspecified() || own[at.Addr()]; {
		case local:
			e.Local = &local
		case ownKnown:
			e.Local = &local
		}
		if e.Local != nil && *e.Local && err == nil && !t.cut {
			served := false
			for _, r := range listening {
				addr := r.local.Addr().Unmap()
				// A wildcard of IPv6 mostly takes IPv4 as well.
				if r.local.Port() == at.Port() && (addr.IsUnspecified() || at.Addr().IsUnspecified() || addr == at.Addr()) {
					served = true
					e.PID = held[r.inode]
				}
			}
			e.Served = &served
		}
		list = append(list, e)
	}
	return list
}

// numeric parses host:port, with localhost as the only name.
func numeric(address string) (netip.AddrPort, bool) {
	const localhost = "localhost:"
	if len(address) > len(localhost) && address[:len(localhost)] == localhost {
		address = "127.0.0.1:" + address[len(localhost):]
	}
	at, err := netip.ParseAddrPort(address)
	return plain(at), err == nil && at.Port() != 0
}

// ownAddresses are the addresses of a network namespace: the "host LOCAL" leaves
// of fib_trie and the lines of if_inet6 (proc_pid_net(5)). known is false if the
// IPv4 ones could not be read.
func ownAddresses(dir string) (own map[netip.Addr]bool, known bool) {
	own = map[netip.Addr]bool{}
	b, err := readUpTo(filepath.Join(dir, "fib_trie"))
	if err == nil {
		known = true
		localIPv4(b, own)
	}
	if b, err = readUpTo(filepath.Join(dir, "if_inet6")); err == nil {
		localIPv6(b, own)
	}
	return own, known
}

// readUpTo reads a table of at most 4 MiB.
func readUpTo(path string) ([]byte, error) {
	const most = 4 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 0, 64<<10)
	in := bufio.NewReader(f)
	for len(b) < most {
		line, err := in.ReadSlice('\n')
		b = append(b, line...)
		if err != nil {
			break
		}
	}
	return b, nil
}

// localIPv4 keeps each address "|-- A.B.C.D" that a line "/32 host LOCAL" follows.
func localIPv4(b []byte, own map[netip.Addr]bool) {
	var last netip.Addr
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if leaf, ok := bytes.CutPrefix(line, []byte("|-- ")); ok {
			last, _ = netip.ParseAddr(string(leaf))
			continue
		}
		if last.IsValid() && bytes.Equal(line, []byte("/32 host LOCAL")) {
			own[last] = true
		}
	}
}

// localIPv6 reads lines that begin with 32 hexadecimal digits.
func localIPv6(b []byte, own map[netip.Addr]bool) {
	for line := range bytes.Lines(b) {
		var raw [16]byte
		ok := len(line) > 32 && line[32] == ' '
		for i := 0; ok && i < 16; i++ {
			var v uint64
			v, ok = hex(line[2*i:2*i+2], 2)
			raw[i] = byte(v)
		}
		if ok {
			own[netip.AddrFrom16(raw)] = true
		}
	}
}

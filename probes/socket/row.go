package socket

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Values of the column st (include/net/tcp_states.h).
const (
	stateEstablished = 1
	stateTimeWait    = 6
	stateCloseWait   = 8
	stateListen      = 10
)

var stateNames = [...]string{
	1: "ESTABLISHED", 2: "SYN_SENT", 3: "SYN_RECV", 4: "FIN_WAIT1", 5: "FIN_WAIT2", 6: "TIME_WAIT",
	7: "CLOSE", 8: "CLOSE_WAIT", 9: "LAST_ACK", 10: "LISTEN", 11: "CLOSING", 12: "NEW_SYN_RECV",
}

// row is one line of /proc/PID/net/tcp or tcp6
// (Documentation/networking/proc_net_tcp.rst).
type row struct {
	network       string // "tcp" or "tcp6": the table it stands in
	local, remote netip.AddrPort
	state         uint8
	// tx and rx are the queues in bytes; of a socket in LISTEN, rx is the
	// number of connections that wait to be accepted.
	tx, rx      int
	retransmits int
	uid         int
	inode       uint64 // 0: no descriptor belongs to it
}

func (r *row) stateName() string {
	if int(r.state) < len(stateNames) && stateNames[r.state] != "" {
		return stateNames[r.state]
	}
	return fmt.Sprintf("state %#02x", r.state)
}

// parseRow parses one line. ok is false for the heading and for anything else
// that is no row.
func parseRow(line []byte) (r row, ok bool) {
	var f [10][]byte // sl local remote st tx:rx tr:when retrnsmt uid timeout inode
	n := 0
	for field := range bytes.FieldsSeq(line) {
		f[n] = field
		if n++; n == len(f) {
			break
		}
	}
	if n < len(f) || !bytes.HasSuffix(f[0], []byte(":")) {
		return row{}, false
	}
	var good [8]bool
	var state, tx, rx, retransmits, uid uint64
	r.local, good[0] = address(f[1])
	r.remote, good[1] = address(f[2])
	state, good[2] = hex(f[3], 2)
	queueTx, queueRx, _ := bytes.Cut(f[4], []byte(":"))
	tx, good[3] = hex(queueTx, 8)
	rx, good[4] = hex(queueRx, 8)
	retransmits, good[5] = hex(f[6], 8)
	uid, good[6] = decimal(f[7], 1<<32-1)
	r.inode, good[7] = decimal(f[9], 1<<64-1)
	if good != [8]bool{true, true, true, true, true, true, true, true} {
		return row{}, false
	}
	r.network = "tcp"
	if len(f[1]) > len("0100007F:1F90") {
		r.network = "tcp6"
	}
	r.state, r.tx, r.rx, r.retransmits, r.uid = uint8(state), int(tx), int(rx), int(retransmits), int(uid)
	return r, true
}

// address parses ADDR:PORT. The address stands there as 32-bit words in the
// byte order of the machine, the port as a plain number.
func address(b []byte) (netip.AddrPort, bool) {
	words, port, found := bytes.Cut(b, []byte(":"))
	p, ok := hex(port, 4)
	if !found || !ok || len(words) != 8 && len(words) != 32 {
		return netip.AddrPort{}, false
	}
	var raw [16]byte
	for i := 0; i < len(words); i += 8 {
		w, ok := hex(words[i:i+8], 8)
		if !ok {
			return netip.AddrPort{}, false
		}
		binary.NativeEndian.PutUint32(raw[i/2:], uint32(w))
	}
	if len(words) == 8 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[:4])), uint16(p)), true
	}
	return netip.AddrPortFrom(netip.AddrFrom16(raw), uint16(p)), true
}

// readable is an address as one would dial it: an IPv4 address that stands in
// an IPv6 row is written as IPv4.
func readable(a netip.AddrPort) string {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String()
}

// hex parses one to digits hexadecimal digits.
func hex(b []byte, digits int) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > digits {
		return 0, false
	}
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | uint64(c-'0')
		case 'A' <= c && c <= 'F':
			v = v<<4 | uint64(c-'A'+10)
		case 'a' <= c && c <= 'f':
			v = v<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// decimal parses a number of at most limit.
func decimal(b []byte, limit uint64) (v uint64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if c < '0' || c > '9' || v > (limit-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

package socket

import (
	"bytes"
	"strings"
)

const (
	unixListening  = 1 << 16 // column Flags: __SO_ACCEPTCON
	unixConnecting = 2       // column St: SS_CONNECTING

	// maxUnixPath is the length of sun_path (unix(7)).
	maxUnixPath = 108
)

// unixRow is one line of /proc/PID/net/unix.
type unixRow struct {
	listening bool
	// connecting with inode 0 and a listener's path: not yet accepted.
	connecting bool
	inode      uint64
	path       string // begins with '@' in the abstract namespace
}

// parseUnixRow parses one line: Num RefCount Protocol Flags Type St Inode Path.
// The path is free text; whoever binds a socket chooses it, so that a newline
// in it makes lines of its own. Only inodes that a process of the tree holds
// count in the end.
func parseUnixRow(line []byte) (r unixRow, ok bool) {
	rest := line
	var f [7][]byte
	for i := range f {
		rest = bytes.TrimLeft(rest, " ")
		end := bytes.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		f[i], rest = rest[:end], rest[end:]
	}
	if !bytes.HasSuffix(f[0], []byte(":")) {
		return unixRow{}, false
	}
	flags, ok1 := hex(f[3], 8)
	state, ok2 := hex(f[5], 2)
	inode, ok3 := decimal(f[6], 1<<64-1)
	if !ok1 || !ok2 || !ok3 {
		return unixRow{}, false
	}
	path := bytes.TrimPrefix(rest, []byte(" "))
	path = path[:min(len(path), maxUnixPath)]
	return unixRow{
		listening:  flags&unixListening != 0,
		connecting: state == unixConnecting,
		inode:      inode,
		path:       strings.ToValidUTF8(string(path), "?"),
	}, true
}

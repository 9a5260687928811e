package socket

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

const (
	// maxTries bounds how often a connection that another process got is made
	// anew. The kernel deals connections out by a hash of both addresses: with two
	// listeners, one in 4,096 runs of 12 tries misses.
	maxTries = 12
	// acceptPatience is how long one connection may wait to be accepted.
	acceptPatience = 3 * time.Second
)

// SharedPortError says that no connection to a shared port was seen to be
// accepted by a process of the tree.
type SharedPortError struct {
	Address string
	// Others is how many connections other processes accepted, Waiting how many
	// nobody did.
	Others, Waiting int
}

func (e *SharedPortError) Error() string {
	return fmt.Sprintf("%s is shared with another process (SO_REUSEPORT): of %d connections it got %d, and %d were accepted by nobody within %s",
		e.Address, e.Others+e.Waiting, e.Others, e.Waiting, acceptPatience)
}

// AcceptedBy makes dial give only connections that a process of the tree has
// accepted: for a port on which others listen as well. Nothing is sent on the
// connections that others get; they are closed.
func AcceptedBy(procDir string, procs []evidence.Process, dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		shared := &SharedPortError{Address: address}
		for range maxTries {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			switch ours, accepted := accepter(ctx, procDir, procs, conn); {
			case ours:
				return conn, nil
			case accepted:
				shared.Others++
			default:
				shared.Waiting++
			}
			conn.Close()
			if ctx.Err() != nil || shared.Waiting > 2 {
				break
			}
		}
		return nil, shared
	}
}

// accepter waits until the other end of a connection has an owner, and says
// whether that is a process of the tree.
func accepter(ctx context.Context, procDir string, procs []evidence.Process, conn net.Conn) (ours, accepted bool) {
	local, err1 := netip.ParseAddrPort(conn.LocalAddr().String())
	remote, err2 := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err1 != nil || err2 != nil || len(procs) == 0 {
		return false, false
	}
	local, remote = plain(local), plain(remote)
	dir := filepath.Join(processDir(procDir, procs[0].PID), "net")
	for until := time.Now().Add(acceptPatience); time.Now().Before(until); {
		var inode uint64
		_, _ = eachRow(dir, bothTables, func(r *row) {
			if r.state != stateListen && plain(r.local) == remote && plain(r.remote) == local {
				inode = r.inode
			}
		})
		if inode != 0 {
			_, ours = ownersOf(procDir, procs).pid[inode]
			return ours, true
		}
		select {
		case <-ctx.Done():
			return false, false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false, false
}

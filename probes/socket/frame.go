package socket

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Frame is the cheap repeated look at what s knows: no descriptor is read. own
// are local ports of whyhang's own connections to the target, which are not
// counted. Nil when the tables cannot be read any more. A listener that was
// opened after the first look is not in it: for that there is Look.
func Frame(procDir string, s *evidence.Sockets, own map[int]bool) *evidence.SocketFrame {
	if s == nil || s.PID == 0 {
		return nil
	}
	dir := filepath.Join(processDir(procDir, s.PID), "net")
	if _, err := os.Lstat(filepath.Join(dir, "tcp")); err != nil {
		return nil
	}
	f := &evidence.SocketFrame{AcceptQueues: map[string]int{}, InboundBy: map[string]int{}}
	tables := map[string]bool{} // those with anything of the tree's
	known := make(map[uint64]bool, len(s.Connections))
	inner := map[uint64]bool{}
	for _, c := range s.Connections {
		inner[c.Inode] = c.Inode != 0 && c.PeerPID != 0
		known[c.Inode] = c.Inode != 0
		tables[c.Network] = true
	}
	listens := map[uint64]bool{}
	paths := map[string]string{} // unix path to listener inode
	for _, l := range s.Listeners {
		switch {
		case !ofTree(l):
		case l.Network == "unix":
			paths[l.Address] = strconv.FormatUint(l.Inode, 10)
		default:
			listens[l.Inode] = true
			tables[l.Network] = true
		}
	}
	in := treeListeners(s.Listeners)
	var ownWaiting []uint64 // by listener
	names := slices.DeleteFunc(slices.Clone(bothTables), func(name string) bool { return !tables[name] })
	_, err := eachRow(dir, names, func(r *row) {
		if r.state == stateListen {
			if listens[r.inode] {
				f.AcceptQueues[strconv.FormatUint(r.inode, 10)] = r.rx
			}
			return
		}
		listener, came := in.of(r)
		if came && own[int(r.remote.Port())] {
			if waiting(r) {
				ownWaiting = append(ownWaiting, listener)
			}
			return
		}
		if came && r.state == stateEstablished {
			f.Inbound++
			if !inner[r.inode] {
				f.InboundBy[strconv.FormatUint(listener, 10)]++
			}
		}
		if known[r.inode] || came && (r.inode != 0 || waiting(r)) {
			f.RxQueueBytes += r.rx
			f.TxQueueBytes += r.tx
		}
	})
	if err != nil {
		return nil
	}
	for _, inode := range ownWaiting {
		key := strconv.FormatUint(inode, 10)
		f.AcceptQueues[key] = max(0, f.AcceptQueues[key]-1)
		if f.OwnWaiting == nil {
			f.OwnWaiting = map[string]int{}
		}
		f.OwnWaiting[key]++
	}
	if len(paths) > 0 {
		unixQueues(dir, paths, f.AcceptQueues)
	}
	return f
}

// unixQueues counts the connections to unix listeners that nobody has
// accepted. A listener that is gone has no queue.
func unixQueues(dir string, paths map[string]string, queues map[string]int) {
	waiting := map[string]int{}
	_ = eachUnixRow(dir, func(r *unixRow) {
		inode := paths[r.path]
		switch {
		case inode == "":
		case r.listening && strconv.FormatUint(r.inode, 10) == inode:
			queues[inode] += 0
		case r.connecting && r.inode == 0:
			waiting[inode]++
		}
	})
	for inode, n := range waiting {
		if _, listens := queues[inode]; listens {
			queues[inode] = n
		}
	}
}

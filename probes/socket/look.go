package socket

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// maxConnections bounds what is kept; a look counts further all the same.
const maxConnections = 4096

// Look is the first, full look: the listeners and connections of the tree, and
// whoever listens on argvPort, the port of its command line (0: not known).
// procs is the tree, its root first. Nil is returned when the tables could not
// be read.
//
// The order matters: a socket that stands in a table was there before the
// descriptors are read. The other way round a listener that was opened in
// between would seem to be somebody else's.
func Look(procDir string, procs []evidence.Process, argvPort int) (*evidence.Sockets, evidence.ProbeRun) {
	start := time.Now()
	s, run := look(procDir, procs, argvPort)
	run.Name = evidence.ProbeSockets
	run.TookMS = probes.Milliseconds(time.Since(start))
	return s, run
}

func look(procDir string, procs []evidence.Process, argvPort int) (*evidence.Sockets, evidence.ProbeRun) {
	if len(procs) == 0 {
		return nil, evidence.ProbeRun{Status: evidence.Skipped, Detail: "no process to look at"}
	}
	l := &lookup{procDir: procDir, procs: procs, port: argvPort, tree: map[int]bool{}}
	for _, p := range procs {
		l.tree[p.PID] = true
	}
	if err := l.readTables(); err != nil {
		status, why := probes.Classify(err)
		run := evidence.ProbeRun{Status: status, Detail: fmt.Sprintf("/proc/%d/net/tcp: %s", procs[0].PID, why)}
		if status == evidence.Denied {
			run.Hint = l.sudo()
		}
		return nil, run
	}
	l.owners = ownersOf(procDir, procs)
	root := procs[0]
	s := &evidence.Sockets{PID: l.pid, NetNS: root.NetNS, OwnersKnown: l.owners.denied == 0}
	if s.NetNS == "" {
		s.NetNS = namespaceLink(procDir, l.pid)
	}
	s.SameNetNS = sameNamespace(procDir, l.pid, s.NetNS)
	s.Listeners = append(l.listeners(), l.unixListeners()...)
	s.Connections = l.connections(s.Listeners)
	kept := len(s.Connections)
	if kept > maxConnections {
		s.Connections = s.Connections[:maxConnections]
	}
	return s, l.howItWent(kept)
}

// lookup is one full look under way.
type lookup struct {
	procDir string
	procs   []evidence.Process
	port    int
	tree    map[int]bool

	pid    int // whose tables were read
	dir    string
	rows   []row
	unix   []unixRow
	table  table
	owners owners
}

// readTables reads the tables by the first process of the tree that still has
// them: one that has ended has no network namespace.
func (l *lookup) readTables() error {
	var first error
	for _, p := range l.procs {
		l.pid, l.dir = p.PID, filepath.Join(processDir(l.procDir, p.PID), "net")
		t, err := eachRow(l.dir, bothTables, func(r *row) { l.rows = append(l.rows, *r) })
		if err == nil {
			l.table = t
			// A kernel may lack unix sockets; TCP is what matters.
			_ = eachUnixRow(l.dir, func(r *unixRow) { l.unix = append(l.unix, *r) })
			return nil
		}
		l.rows = nil
		if first == nil {
			first = err
		}
	}
	return first
}

// listeners are the TCP listeners of the tree and those of others on its ports.
func (l *lookup) listeners() []evidence.Listener {
	var list []evidence.Listener
	ports := map[int]bool{}
	for i := range l.rows {
		if _, ok := l.owners.pid[l.rows[i].inode]; ok && l.rows[i].state == stateListen {
			ports[int(l.rows[i].local.Port())] = true
		}
	}
	for i := range l.rows {
		r := &l.rows[i]
		if r.state != stateListen {
			continue
		}
		e := evidence.Listener{
			Network: r.network, Address: readable(r.local), Port: int(r.local.Port()),
			Inode: r.inode, UID: r.uid, AcceptQueue: r.rx,
		}
		if pid, ok := l.owners.pid[r.inode]; ok {
			e.Owner, e.PID = evidence.OwnerDescriptor, pid
		} else if e.Port != l.port && !(ports[e.Port] && l.owners.denied == 0) || !l.stranger(&e) {
			continue
		}
		list = append(list, e)
	}
	return list
}

// stranger says who holds a listener on the tree's port that no process of the
// tree seems to hold. False: it is not there any more.
func (l *lookup) stranger(e *evidence.Listener) bool {
	pid := holder(l.procDir, e.Inode, l.tree)
	switch {
	case pid != 0 && descends(l.procDir, pid, l.tree):
		e.Owner, e.PID, e.PIDName = evidence.OwnerDescriptor, pid, commOf(l.procDir, pid)
	case pid != 0:
		e.Owner, e.PID, e.PIDName = evidence.OwnerOther, pid, commOf(l.procDir, pid)
	case l.owners.denied == 0:
		// Nobody who may be looked at has it. Closed between the two reads?
		if !l.stillListens(e.Inode) {
			return false
		}
		e.Owner = evidence.OwnerOther
	case slices.ContainsFunc(l.procs, func(p evidence.Process) bool { return p.UID == e.UID }):
		e.Owner = evidence.OwnerUser
	default:
		// A server may open its port as another user than it then runs as.
		e.Owner = evidence.OwnerUnknown
	}
	return true
}

func (l *lookup) stillListens(inode uint64) bool {
	found := false
	_, err := eachRow(l.dir, bothTables, func(r *row) { found = found || r.state == stateListen && r.inode == inode })
	return found || err != nil
}

// unixListeners are those of the tree.
func (l *lookup) unixListeners() []evidence.Listener {
	queues := map[string]int{}
	for _, r := range l.unix {
		if r.connecting && r.inode == 0 {
			queues[r.path]++
		}
	}
	var list []evidence.Listener
	for _, r := range l.unix {
		pid, ours := l.owners.pid[r.inode]
		if !r.listening || !ours {
			continue
		}
		e := evidence.Listener{
			Network: "unix", Address: r.path, Inode: r.inode,
			Owner: evidence.OwnerDescriptor, PID: pid, AcceptQueue: queues[r.path],
		}
		// The table names no user: the holder's is the nearest there is.
		for _, p := range l.procs {
			if p.PID == pid {
				e.UID = p.UID
			}
		}
		list = append(list, e)
	}
	return list
}

// connections are those that a process of the tree holds, and those to its
// listeners that nobody has accepted or whose holder is not known; inbound
// ones first.
func (l *lookup) connections(listeners []evidence.Listener) []evidence.Connection {
	in := treeListeners(listeners)
	// The other end of a connection inside the tree has its addresses the other
	// way round.
	held := map[ends]int{}
	for i := range l.rows {
		r := &l.rows[i]
		if pid, ours := l.owners.pid[r.inode]; ours && r.state != stateListen {
			held[endsOf(r)] = pid
		}
	}
	var list []evidence.Connection
	for i := range l.rows {
		r := &l.rows[i]
		pid, ours := l.owners.pid[r.inode]
		_, came := in.of(r)
		switch {
		case r.state == stateListen:
			continue
		case ours:
		case came && (r.inode != 0 || waiting(r)):
		default:
			continue
		}
		list = append(list, evidence.Connection{
			Network: r.network, Local: readable(r.local), Remote: readable(r.remote), State: r.stateName(),
			Inode: r.inode, PID: pid, PeerPID: held[endsOf(r).swapped()], RxQueueBytes: r.rx, TxQueueBytes: r.tx, Inbound: came, Retransmits: r.retransmits,
		})
	}
	slices.SortFunc(list, func(a, b evidence.Connection) int {
		if a.Inbound != b.Inbound {
			if a.Inbound {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Local, b.Local), cmp.Compare(a.Remote, b.Remote), cmp.Compare(a.Inode, b.Inode))
	})
	return list
}

func (l *lookup) sudo() string { return "sudo whyhang " + strconv.Itoa(l.procs[0].PID) }

// howItWent says what is missing.
func (l *lookup) howItWent(connections int) evidence.ProbeRun {
	run := evidence.ProbeRun{Status: evidence.OK}
	var says []string
	if l.owners.denied > 0 {
		_, why := probes.Classify(l.owners.err)
		says = append(says, fmt.Sprintf("descriptors of %d of %d processes not readable: %s", l.owners.denied, len(l.procs), why))
		run.Hint = l.sudo()
	}
	elsewhere := 0
	for _, p := range l.procs {
		if p.NetNS != "" && l.procs[0].NetNS != "" && p.NetNS != l.procs[0].NetNS {
			elsewhere++
		}
	}
	if elsewhere > 0 {
		says = append(says, fmt.Sprintf("%d of %d processes in another network namespace than %d: sockets not listed", elsewhere, len(l.procs), l.procs[0].PID))
	}
	if l.table.odd {
		says = append(says, fmt.Sprintf("/proc/%d/net/tcp has lines of an unknown form", l.pid))
	}
	if l.table.cut {
		says = append(says, fmt.Sprintf("only the first %d sockets of the namespace were read", maxRows))
	}
	if connections > maxConnections {
		says = append(says, fmt.Sprintf("only the first %d of %d connections are listed", maxConnections, connections))
	}
	if len(says) > 0 {
		run.Status, run.Detail = evidence.Partial, strings.Join(says, "; ")
	}
	return run
}

package facts

import (
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Door is the listener that answers requests, if it can be told.
type Door struct {
	// Listens: a listening socket of the tree was found. NotKnown says why it
	// is not known whether there is one.
	Listens  bool
	NotKnown string
	// Listener is the index into Snapshot.Sockets.Listeners, -1 if none.
	Listener int
	// URL is the base URL, such as "http://127.0.0.1:8000", or "unix:PATH".
	URL string
	// Socket is the path of the unix socket, "" for TCP.
	Socket string
	// Because says why it is this one; Ambiguous: there are several and nothing
	// tells which one it is.
	Because   string
	Ambiguous bool
	// Closed: the engine is known, and it does not listen where requests would
	// come in; what listeners there are serve its own parts.
	Closed bool
	// WantedPort is the port the server was told to use, or says it uses, 0 if
	// not known; WantedBecause says where that stands.
	WantedPort    int
	WantedBecause string
	// OtherOwner is a listener where the server was told to listen that belongs to
	// somebody else, -1 if none. Shared: the server listens there as well
	// (SO_REUSEPORT), and the kernel deals connections out to both.
	OtherOwner int
	Shared     bool
}

// PID is the process that holds the door, or the root of the tree.
func (d *Door) PID(s *evidence.Snapshot) int {
	if d.Listener >= 0 && s.Sockets.Listeners[d.Listener].PID != 0 {
		return s.Sockets.Listeners[d.Listener].PID
	}
	return s.Target.PID
}

func doorOf(s *evidence.Snapshot, f *Facts) Door {
	d := Door{Listener: -1, OtherOwner: -1}
	if s.Sockets == nil {
		d.NotKnown = "sockets were not read"
		return d
	}
	port, told, because := f.wantedPort()
	if told {
		d.WantedPort, d.WantedBecause = port, because
	}
	var mine []int
	for i := range s.Sockets.Listeners {
		l := &s.Sockets.Listeners[i]
		switch {
		case ofTree(l):
			mine = append(mine, i)
		case l.Owner == evidence.OwnerOther && port != 0 && l.Port == port && f.overlaps(l):
			d.OtherOwner = i
		}
	}
	d.Listens = len(mine) > 0
	if !d.Listens && !s.Sockets.OwnersKnown {
		d.NotKnown = "the descriptors of the tree are not readable, so the owner of a socket is not known"
	}
	d.choose(s, f, mine, port, told, because)
	if d.Listener >= 0 {
		l := &s.Sockets.Listeners[d.Listener]
		d.OtherOwner = sharer(s, l)
		d.Shared = d.OtherOwner >= 0
		if d.URL = URLOf(l); l.Network == "unix" {
			d.Socket = l.Address
		}
	}
	d.Closed = d.NotKnown == "" && s.Sockets.OwnersKnown && f.Engine.Known != nil && f.Engine.Roles[f.Engine.MainPID].Name == "api-server" &&
		d.Listener < 0 && !d.Ambiguous && f.Phases.Ready == nil && !f.opensElsewhere()
	return d
}

// overlaps: a listener of somebody else takes connections that were meant for
// the address of the command line. What that is for a name is not known: it is
// taken to overlap.
func (f *Facts) overlaps(l *evidence.Listener) bool {
	at, err := netip.ParseAddrPort(l.Address)
	if err != nil || at.Addr().IsUnspecified() {
		return true
	}
	host := f.Engine.Host
	if host == "localhost" {
		return at.Addr().Unmap().IsLoopback()
	}
	want, err := netip.ParseAddr(host)
	return err != nil || want.IsUnspecified() || want.Unmap() == at.Addr().Unmap()
}

// sharer is the listener of somebody else that takes connections to the address
// of a listener, -1 if there is none.
func sharer(s *evidence.Snapshot, l *evidence.Listener) int {
	at, err := netip.ParseAddrPort(l.Address)
	if err != nil {
		return -1
	}
	for i := range s.Sockets.Listeners {
		o := &s.Sockets.Listeners[i]
		other, err := netip.ParseAddrPort(o.Address)
		if err != nil || o.Owner != evidence.OwnerOther || o.Port != l.Port || o.Network != l.Network {
			continue
		}
		if at.Addr() == other.Addr() || at.Addr().IsUnspecified() || other.Addr().IsUnspecified() {
			return i
		}
	}
	return -1
}

// Holder names who holds a listener of somebody else.
func Holder(l *evidence.Listener) string {
	if l.PID == 0 {
		return "a process that could not be found"
	}
	return "process " + strconv.Itoa(l.PID) + " (" + l.PIDName + ")"
}

// opensElsewhere: requests come in through a descriptor that was handed to the
// server, or at another node.
func (f *Facts) opensElsewhere() bool {
	_, elsewhere := f.Engine.Command.Value("--fd", "--headless")
	return elsewhere || f.Engine.Command.Int(0, "--node-rank", "-r") > 0
}

// forParts: a listener at which the engine's own parts meet (a store, a message
// queue) is no door.
func (f *Facts) forParts(l *evidence.Listener) bool {
	if l.PID == f.Engine.MainPID || f.Engine.Roles[f.Engine.MainPID].Name != "api-server" || f.Engine.Known.Heads == nil {
		return false
	}
	switch r := f.Engine.Roles[l.PID]; r.Name {
	case "scheduler", "engine-core", "detokenizer", "data-parallel-controller":
		return true
	case "worker":
		return r.Rank != "" || f.Engine.ID() == "vllm"
	}
	return f.Engine.Untitled[l.PID]
}

// ofTree: the listener is one of the server's own, as far as is known.
func ofTree(l *evidence.Listener) bool {
	return l.Owner == evidence.OwnerDescriptor || l.Owner == evidence.OwnerUser
}

// wantedPort is the port the server was told to use, or says it uses; told is
// false for an engine's default, which is only a guess.
func (f *Facts) wantedPort() (port int, told bool, because string) {
	if p, ev := f.Phases.Value("port"); ev != nil {
		if n, err := strconv.Atoi(p); err == nil {
			return n, true, "line " + strconv.FormatInt(ev.Hit.Line, 10) + " of the log names port " + p
		}
	}
	if f.Engine.Port != 0 {
		because = "the command line's port is "
		if !f.Engine.PortTold {
			because = "the engine's default port is "
		}
		return f.Engine.Port, f.Engine.PortTold, because + strconv.Itoa(f.Engine.Port)
	}
	return 0, false, ""
}

// choose takes the listener on the wanted port; without one, the only TCP
// listener, or the only one of the main process. Internal listeners (stores,
// message queues) must not be sent HTTP.
func (d *Door) choose(s *evidence.Snapshot, f *Facts, mine []int, port int, told bool, because string) {
	var tcp, ofMain, ofMainPID, local []int
	for _, i := range mine {
		l := &s.Sockets.Listeners[i]
		if l.Network == "unix" {
			if f.Engine.Socket != "" && sameSocket(l.Address, f.Engine.Socket) {
				d.Listener, d.Because = i, "the command line names the unix socket "+f.Engine.Socket
				return
			}
			local = append(local, i)
			continue
		}
		if port != 0 && l.Port == port {
			d.Listener, d.Because = i, because
			return
		}
		if f.forParts(l) {
			continue
		}
		tcp = append(tcp, i)
		if l.PID == f.Engine.MainPID {
			ofMain = append(ofMain, i)
		}
		if len(s.Processes) > 0 && l.PID == s.Processes[0].PID {
			ofMainPID = append(ofMainPID, i)
		}
	}
	// A server that was told its port and does not listen there is not up,
	// whatever else it listens on.
	if (told || f.Engine.Socket != "") && f.Engine.Known != nil {
		return
	}
	for _, c := range []struct {
		set     []int
		because string
	}{
		{onePort(s, tcp), "it is the only one"},
		{onePort(s, ofMain), "it is the only one of the main process"},
		{onePort(s, ofMainPID), "it is the only one of process " + rootPID(s)},
	} {
		if len(c.set) >= 1 {
			d.Listener, d.Because = c.set[0], c.because
			return
		}
	}
	// Message queues listen on unix sockets as well: one is only taken where nothing
	// else listens and no engine is known that may have such queues.
	if len(tcp) == 0 && len(local) == 1 && f.Engine.Known == nil {
		d.Listener, d.Because = local[0], "it is the only one"
	}
	d.Ambiguous = len(tcp) > 1
}

// sameSocket: a listener was bound to the path of the command line, which may be
// written in another way.
func sameSocket(bound, told string) bool {
	return bound == told || path.Clean(bound) == path.Clean(told) || !path.IsAbs(told) && strings.HasSuffix(path.Clean(bound), "/"+path.Clean(told))
}

// onePort is the set if all of it listens on the same port, else nothing.
func onePort(s *evidence.Snapshot, set []int) []int {
	for _, i := range set {
		if s.Sockets.Listeners[i].Port != s.Sockets.Listeners[set[0]].Port {
			return nil
		}
	}
	return set
}

func rootPID(s *evidence.Snapshot) string {
	if len(s.Processes) == 0 {
		return "?"
	}
	return strconv.Itoa(s.Processes[0].PID)
}

// Place says whose place it was that was asked.
type Place int

// The places a URL can lead to.
const (
	// PlaceOwn is a socket of the tree.
	PlaceOwn Place = iota
	// PlaceUnknown may lead to the tree or not: another host, a container.
	PlaceUnknown
	// PlaceElsewhere is on this host and no socket of the tree: a proxy in front
	// of it, or another server.
	PlaceElsewhere
)

// Place tells where a URL that the operator named leads. Without a URL the door
// itself was asked.
func (d *Door) Place(s *evidence.Snapshot, named string) Place {
	if named == "" {
		if d.Listener < 0 {
			return PlaceUnknown
		}
		return PlaceOwn
	}
	u, err := url.Parse(named)
	if err != nil || s.Sockets == nil {
		return PlaceUnknown
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
		if port == "" {
			port = "80"
		}
	}
	addr, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && (addr.IsLoopback() || addr.IsUnspecified())
	for i := range s.Sockets.Listeners {
		l := &s.Sockets.Listeners[i]
		if !ofTree(l) || strconv.Itoa(l.Port) != port {
			continue
		}
		own, _ := netip.ParseAddrPort(l.Address)
		if local || err == nil && addr.Unmap() == own.Addr().Unmap() {
			return PlaceOwn
		}
	}
	if local && s.Sockets.OwnersKnown && s.Sockets.SameNetNS != nil && *s.Sockets.SameNetNS {
		return PlaceElsewhere
	}
	return PlaceUnknown
}

// OwnAddresses are the TCP addresses of the tree, for people.
func (d *Door) OwnAddresses(s *evidence.Snapshot) []string {
	var list []string
	if s.Sockets == nil {
		return nil
	}
	for i := range s.Sockets.Listeners {
		l := &s.Sockets.Listeners[i]
		if ofTree(l) && l.Network != "unix" {
			list = append(list, l.Address)
		}
	}
	return list
}

// URLOf is the base URL of a listener, "unix:PATH" of one without a port. A wildcard address is reached
// through loopback.
func URLOf(l *evidence.Listener) string {
	if l.Network == "unix" {
		return "unix:" + l.Address
	}
	ap, err := netip.ParseAddrPort(l.Address)
	if err != nil {
		return "http://" + l.Address
	}
	addr := ap.Addr().Unmap()
	if addr.IsUnspecified() {
		if addr.Is6() {
			// Most wildcard IPv6 listeners take IPv4 as well; the IPv6 loopback
			// always works.
			addr = netip.IPv6Loopback()
		} else {
			addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
	}
	return "http://" + netip.AddrPortFrom(addr, ap.Port()).String()
}

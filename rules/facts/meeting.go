package facts

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Meeting is an address at which ranks are to meet: the store of rank 0.
type Meeting struct {
	// Address is host:port; Because says where it stands, At the place in the
	// snapshot.
	Address, Because string
	At               []any
	// Endpoint is its index in Sockets.Endpoints, -1 if it was not looked at.
	Endpoint int
}

// maxMeetings bounds the list: a log may name many ports.
const maxMeetings = 16

// meetingsOf finds the addresses on the command line, in the environment and in
// the lines of the log about the set-up of communicators.
func meetingsOf(s *evidence.Snapshot, f *Facts) []Meeting {
	var list []Meeting
	add := func(address, because string, at ...any) {
		address = strings.TrimPrefix(address, "tcp://")
		if _, port, ok := strings.Cut(address, ":"); !ok || port == "" || len(list) == maxMeetings {
			return
		}
		for _, m := range list {
			if m.Address == address {
				return
			}
		}
		m := Meeting{Address: address, Because: because, At: at, Endpoint: -1}
		if s.Sockets != nil {
			for i := range s.Sockets.Endpoints {
				if s.Sockets.Endpoints[i].Address == address {
					m.Endpoint = i
				}
			}
		}
		list = append(list, m)
	}
	if e := f.Engine.Known; e != nil {
		main := f.Tree.Index[f.Engine.MainPID]
		for _, name := range e.Meets.Address {
			v, ok := f.Engine.Command.Value(name)
			if !ok {
				continue
			}
			if port, has := f.Engine.Command.Value(e.Meets.Port...); has && !strings.Contains(strings.TrimPrefix(v, "tcp://"), ":") {
				v += ":" + port
			}
			add(v, "the command line's "+name, "processes", main, "pid")
		}
	}
	for i := range s.Processes {
		env := s.Processes[i].Env
		if env["MASTER_ADDR"] != "" && env["MASTER_PORT"] != "" {
			add(env["MASTER_ADDR"]+":"+env["MASTER_PORT"], "MASTER_ADDR and MASTER_PORT", "processes", i, "env", "MASTER_PORT")
		}
	}
	for i := range f.Phases.events {
		ev := &f.Phases.events[i]
		if ev.Mark.Phase != evidence.PhaseCommunicator {
			continue
		}
		if address := addressIn(ev.Hit.Text); address != "" {
			add(address, "a line of the log", ev.Field("text")...)
		}
	}
	return list
}

// Texts of torch and the engines: "distributed_init_method=tcp://127.0.0.1:24317",
// "failed to connect/validate to host 10.0.0.1:29500", "connect to (10.0.0.1, 29500)".
var (
	initMethod = regexp.MustCompile(`init_method=tcp://([0-9A-Za-z_.:\[\]-]{1,80}:\d{1,5})`)
	toHost     = regexp.MustCompile(`to host (\[?[0-9A-Za-z_.:-]{1,80}\]?:\d{1,5})\b`)
	connectTo  = regexp.MustCompile(`connect to \(([0-9A-Za-z_.:-]{1,80}), (\d{1,5})\)`)
)

func addressIn(text string) string {
	if m := initMethod.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := toHost.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	m := connectTo.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	if addr, err := netip.ParseAddr(m[1]); err == nil && addr.Is6() {
		return "[" + m[1] + "]:" + m[2]
	}
	return m[1] + ":" + m[2]
}

package facts

import (
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// listening is a snapshot of a process 7 that listens as said.
func listening(addresses ...evidence.Listener) *evidence.Snapshot {
	s := &evidence.Snapshot{Target: evidence.Target{PID: 7}, Processes: []evidence.Process{{PID: 7}}, Sockets: &evidence.Sockets{OwnersKnown: true}}
	for i, l := range addresses {
		l.Inode = uint64(i + 1)
		if l.Owner == "" {
			l.Owner = evidence.OwnerDescriptor
		}
		s.Sockets.Listeners = append(s.Sockets.Listeners, l)
	}
	return s
}

func tcp(address string, port, pid int) evidence.Listener {
	return evidence.Listener{Network: "tcp", Address: address, Port: port, PID: pid}
}

func TestDoor(t *testing.T) {
	told := &Facts{Engine: Engine{Port: 8000, PortTold: true, MainPID: 7}}
	for _, tc := range []struct {
		name      string
		s         *evidence.Snapshot
		f         *Facts
		url       string
		ambiguous bool
	}{
		{"only one", listening(tcp("127.0.0.1:9000", 9000, 7)), &Facts{}, "http://127.0.0.1:9000", false},
		{"wildcard", listening(tcp("0.0.0.0:9000", 9000, 7)), &Facts{}, "http://127.0.0.1:9000", false},
		{"IPv6 wildcard", listening(tcp("[::]:9000", 9000, 7)), &Facts{}, "http://[::1]:9000", false},
		{"the port it was told", listening(tcp("127.0.0.1:5000", 5000, 7), tcp("127.0.0.1:8000", 8000, 8)), told, "http://127.0.0.1:8000", false},
		{"a worker's store is no door", listening(tcp("127.0.0.1:5000", 5000, 8), tcp("127.0.0.1:9000", 9000, 7)), &Facts{}, "http://127.0.0.1:9000", false},
		{"two of the root's", listening(tcp("127.0.0.1:5000", 5000, 7), tcp("127.0.0.1:9000", 9000, 7)), &Facts{}, "", true},
		{"both families of one port", listening(tcp("0.0.0.0:9000", 9000, 7), tcp("[::]:9000", 9000, 7)), &Facts{}, "http://127.0.0.1:9000", false},
		{"somebody else's", listening(evidence.Listener{Network: "tcp", Address: "127.0.0.1:8000", Port: 8000, Owner: evidence.OwnerOther, PID: 99}), told, "", false},
		{"unix only", listening(evidence.Listener{Network: "unix", Address: "/run/x.sock", PID: 7}), &Facts{}, "unix:/run/x.sock", false},
		{"two unix sockets", listening(evidence.Listener{Network: "unix", Address: "/run/x.sock", PID: 7}, evidence.Listener{Network: "unix", Address: "/tmp/q", PID: 7}), &Facts{}, "", false},
		{"unix and TCP", listening(evidence.Listener{Network: "unix", Address: "/tmp/q", PID: 7}, tcp("127.0.0.1:9000", 9000, 7)), &Facts{}, "http://127.0.0.1:9000", false},
		{"the unix socket it was told, beside a queue and a store", listening(evidence.Listener{Network: "unix", Address: "/tmp/q", PID: 7}, evidence.Listener{Network: "unix", Address: "/run/x.sock", PID: 7}, tcp("127.0.0.1:9000", 9000, 7)),
			&Facts{Engine: Engine{Socket: "/run/./x.sock", MainPID: 7}}, "unix:/run/x.sock", false},
		{"a relative one", listening(evidence.Listener{Network: "unix", Address: "x.sock", PID: 7}), &Facts{Engine: Engine{Socket: "./x.sock", MainPID: 7}}, "unix:x.sock", false},
		{"a queue of an engine that was told a port", listening(evidence.Listener{Network: "unix", Address: "/tmp/q", PID: 7}), &Facts{Engine: Engine{Known: &engines.Engine{}, Port: 8000, PortTold: true, MainPID: 7}}, "", false},
	} {
		d := doorOf(tc.s, tc.f)
		if d.URL != tc.url || d.Ambiguous != tc.ambiguous {
			t.Errorf("%s: %q, ambiguous %v", tc.name, d.URL, d.Ambiguous)
		}
	}
}

func TestPlace(t *testing.T) {
	here := true
	s := listening(tcp("0.0.0.0:9000", 9000, 7), tcp("127.0.0.1:5000", 5000, 8))
	s.Sockets.OwnersKnown, s.Sockets.SameNetNS = true, &here
	d := doorOf(s, &Facts{})
	for url, want := range map[string]Place{
		"": PlaceOwn, "http://localhost:9000": PlaceOwn, "http://127.0.0.1:9000/v1": PlaceOwn, "http://[::1]:9000": PlaceOwn, "http://0.0.0.0:9000": PlaceOwn,
		"http://localhost:5000": PlaceOwn, "http://localhost:9001": PlaceElsewhere, "http://127.0.0.1": PlaceElsewhere,
		"http://10.1.2.3:9000": PlaceUnknown, "http://example.org:9000": PlaceUnknown, "nonsense": PlaceUnknown,
	} {
		if got := d.Place(s, url); got != want {
			t.Errorf("%q: %v, want %v", url, got, want)
		}
	}
	// A server in a container may be reached through a port of the host.
	s.Sockets.SameNetNS = nil
	if got := d.Place(s, "http://localhost:9001"); got != PlaceUnknown {
		t.Errorf("another network namespace: %v", got)
	}
}

package socket

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// fixture is a /proc with the given files; "link" files begin with "-> ".
func fixture(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// A server that listens on all IPv4 addresses and on IPv6, one client that was
// accepted, one that was not, one that came by IPv4 to the IPv6 socket, a
// connection of the server's own, a closed one, and others' sockets.
const tcp = heading +
	"   0: 00000000:7530 00000000:0000 0A 00000000:00000001 00:00000000 00000000  1000        0 101 1 0 100 0 0 10 0\n" +
	"   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 900 1 0 100 0 0 10 0\n" +
	"   2: 0100007F:7530 0100007F:A001 01 00000000:00000010 00:00000000 00000000  1000        0 102 1 0 20 4 30 10 -1\n" +
	"   3: 0100007F:7530 0100007F:A002 01 00000000:00000021 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n" +
	"   4: 0100007F:7530 0100007F:A003 06 00000000:00000000 03:00001770 00000000     0        0 0 3 0\n" +
	"   5: 0100007F:7530 0100007F:A004 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1\n" +
	"   6: 0200000A:C000 0100000A:4E20 02 00000001:00000000 01:00000190 00000003  1000        0 103 2 0 800 0 0 1 7\n" +
	"   7: 0100007F:A001 0100007F:7530 01 00000000:00000000 00:00000000 00000000     0        0 901 1 0 20 4 30 10 -1\n"

const tcp6 = heading +
	"   0: 00000000000000000000000000000000:7530 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 104 1 0 100 0 0 10 0\n" +
	"   1: 0000000000000000FFFF00000100007F:7530 0000000000000000FFFF00000100007F:A005 01 00000000:00000000 00:00000000 00000000  1000        0 105 1 0 20 4 1 10 -1\n"

const unixTable = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
	"0000000000000000: 00000002 00000000 00010000 0001 01 106 /tmp/rpc 1\n" +
	"0000000000000000: 00000002 00000000 00010000 0001 01 902 /run/other\n" +
	"0000000000000000: 00000002 00000000 00000000 0001 02 0 /tmp/rpc 1\n" +
	"0000000000000000: 00000002 00000000 00000000 0001 02 0 /run/other\n"

func serverFiles() map[string]string {
	return map[string]string{
		"10/net/tcp": tcp, "10/net/tcp6": tcp6, "10/net/unix": unixTable,
		"10/stat": "10 (server) S 1 10 10", "11/stat": "11 (a) b) S 10 10 10",
		"10/fd/0": "-> /dev/null", "10/fd/3": "-> socket:[101]", "10/fd/4": "-> socket:[102]", "10/fd/5": "-> pipe:[9]",
		"11/fd/3": "-> socket:[101]", "11/fd/4": "-> socket:[103]", "11/fd/5": "-> socket:[104]",
		"11/fd/6": "-> socket:[105]", "11/fd/7": "-> socket:[106]",
	}
}

var serverTree = []evidence.Process{{PID: 10, UID: 1000}, {PID: 11, PPID: 10, UID: 1001}}

func TestLook(t *testing.T) {
	s, run := Look(fixture(t, serverFiles()), serverTree, 30000)
	if run.Status != evidence.OK || run.Name != evidence.ProbeSockets || run.Detail != "" {
		t.Errorf("run is %+v", run)
	}
	want := &evidence.Sockets{
		PID: 10, OwnersKnown: true,
		Listeners: []evidence.Listener{
			{Network: "tcp", Address: "0.0.0.0:30000", Port: 30000, Inode: 101, UID: 1000, Owner: evidence.OwnerDescriptor, PID: 10, AcceptQueue: 1},
			{Network: "tcp6", Address: "[::]:30000", Port: 30000, Inode: 104, UID: 1000, Owner: evidence.OwnerDescriptor, PID: 11},
			{Network: "unix", Address: "/tmp/rpc 1", Inode: 106, UID: 1001, Owner: evidence.OwnerDescriptor, PID: 11, AcceptQueue: 1},
		},
		Connections: []evidence.Connection{
			{Network: "tcp", Local: "127.0.0.1:30000", Remote: "127.0.0.1:40961", State: "ESTABLISHED", Inode: 102, PID: 10, RxQueueBytes: 16, Inbound: true},
			{Network: "tcp", Local: "127.0.0.1:30000", Remote: "127.0.0.1:40962", State: "ESTABLISHED", RxQueueBytes: 33, Inbound: true},
			{Network: "tcp6", Local: "127.0.0.1:30000", Remote: "127.0.0.1:40965", State: "ESTABLISHED", Inode: 105, PID: 11, Inbound: true},
			{Network: "tcp", Local: "10.0.0.2:49152", Remote: "10.0.0.1:20000", State: "SYN_SENT", Inode: 103, PID: 11, TxQueueBytes: 1, Retransmits: 3},
		},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("sockets (-want +got):\n%s", d)
	}
}

func TestFrame(t *testing.T) {
	dir := fixture(t, serverFiles())
	s, _ := Look(dir, serverTree, 30000)
	got := Frame(dir, s, nil)
	want := &evidence.SocketFrame{
		AcceptQueues: map[string]int{"101": 1, "104": 0, "106": 1},
		InboundBy:    map[string]int{"101": 2, "104": 1},
		Inbound:      3, RxQueueBytes: 49, TxQueueBytes: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("frame (-want +got):\n%s", d)
	}
	// The client that waits and the one by IPv6 are whyhang itself.
	got = Frame(dir, s, map[int]bool{40962: true, 40965: true})
	want = &evidence.SocketFrame{
		AcceptQueues: map[string]int{"101": 0, "104": 0, "106": 1},
		OwnWaiting:   map[string]int{"101": 1}, InboundBy: map[string]int{"101": 1},
		Inbound: 1, RxQueueBytes: 16, TxQueueBytes: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("frame without our own connections (-want +got):\n%s", d)
	}
	if f := Frame(t.TempDir(), s, nil); f != nil {
		t.Errorf("frame of a process that is gone: %+v", f)
	}
	if f := Frame(dir, nil, nil); f != nil {
		t.Errorf("frame of nothing: %+v", f)
	}
}

func TestStrangerOnThePort(t *testing.T) {
	line := "   0: 00000000:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 500 1 0 100 0 0 10 0\n"
	type files = map[string]string
	for name, c := range map[string]struct {
		files files
		port  int
		want  *evidence.Listener
	}{
		"another process": {
			files{"20/fd/8": "-> socket:[500]", "20/comm": "nginx\n", "20/stat": "20 (nginx) S 1 20"}, 30000,
			&evidence.Listener{Owner: evidence.OwnerOther, PID: 20, PIDName: "nginx"},
		},
		"a child younger than the look at the tree": {
			files{"20/fd/8": "-> socket:[500]", "20/comm": "worker\n", "20/stat": "20 (worker) S 19 20", "19/stat": "19 (x) S 11 19"}, 30000,
			&evidence.Listener{Owner: evidence.OwnerDescriptor, PID: 20, PIDName: "worker"},
		},
		"nobody who may be looked at": {files{}, 30000, &evidence.Listener{Owner: evidence.OwnerOther}},
		"another port":                {files{"20/fd/8": "-> socket:[500]"}, 30001, nil},
		"port not known":              {files{"20/fd/8": "-> socket:[500]"}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["10/net/tcp"] = heading + line
			c.files["10/fd/0"] = "-> /dev/null"
			c.files["11/fd/0"] = "-> /dev/null"
			s, run := Look(fixture(t, c.files), serverTree, c.port)
			if run.Status != evidence.OK || !s.OwnersKnown {
				t.Errorf("run is %+v", run)
			}
			var want []evidence.Listener
			if c.want != nil {
				c.want.Network, c.want.Address, c.want.Port, c.want.Inode, c.want.UID = "tcp", "0.0.0.0:30000", 30000, 500, 1000
				want = append(want, *c.want)
			}
			if d := cmp.Diff(want, s.Listeners); d != "" {
				t.Errorf("listeners (-want +got):\n%s", d)
			}
		})
	}
}

func TestOddTable(t *testing.T) {
	files := serverFiles()
	files["10/net/tcp"] += "a line of tomorrow's kernel\n"
	s, run := Look(fixture(t, files), serverTree, 30000)
	if run.Status != evidence.Partial || !strings.Contains(run.Detail, "unknown form") || len(s.Listeners) != 3 {
		t.Errorf("run %+v, %d listeners", run, len(s.Listeners))
	}
}

func TestNothingToRead(t *testing.T) {
	if s, run := Look(t.TempDir(), serverTree, 0); s != nil || run.Status != evidence.Failed || run.Detail == "" {
		t.Errorf("run %+v, sockets %+v", run, s)
	}
	if s, run := Look(t.TempDir(), nil, 0); s != nil || run.Status != evidence.Skipped {
		t.Errorf("run %+v, sockets %+v", run, s)
	}
}

func TestTreeInSeveralNamespaces(t *testing.T) {
	tree := []evidence.Process{{PID: 10, NetNS: "net:[1]"}, {PID: 11, NetNS: "net:[2]"}}
	s, run := Look(fixture(t, serverFiles()), tree, 0)
	if run.Status != evidence.Partial || !strings.Contains(run.Detail, "1 of 2 processes in another network namespace") {
		t.Errorf("run is %+v", run)
	}
	if s.NetNS != "net:[1]" || s.SameNetNS == nil || *s.SameNetNS {
		t.Errorf("namespace %q, same %v", s.NetNS, s.SameNetNS)
	}
}

// crowd is a table of n connections to one listener.
func crowd(n int) string {
	var b strings.Builder
	b.WriteString(heading + "   0: 00000000:7530 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 101 1 0 100 0 0 10 0\n")
	for i := range n {
		fmt.Fprintf(&b, "%4d: 0100007F:7530 %08X:A001 01 00000000:00000001 00:00000000 00000000  1000        0 %d 1 0000000000000000 20 4 30 10 -1\n", i+1, i+1, 1000+i)
	}
	return b.String()
}

func TestTooManyConnectionsToList(t *testing.T) {
	files := serverFiles()
	files["10/net/tcp"] = crowd(maxConnections + 50)
	dir := fixture(t, files)
	s, run := Look(dir, serverTree, 0)
	if run.Status != evidence.Partial || len(s.Connections) != maxConnections {
		t.Errorf("run %+v, %d connections", run, len(s.Connections))
	}
	if f := Frame(dir, s, nil); f.Inbound != maxConnections+50+1 {
		t.Errorf("the frame counts %d", f.Inbound)
	}
}

func BenchmarkFrame10000Connections(b *testing.B) {
	files := serverFiles()
	files["10/net/tcp"] = crowd(10_000)
	dir := fixture(b, files)
	s, _ := Look(dir, serverTree, 0)
	b.ReportAllocs()
	for b.Loop() {
		if Frame(dir, s, nil) == nil {
			b.Fatal("no frame")
		}
	}
}

package socket

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// only is the one listener with that address.
func only(t *testing.T, s *evidence.Sockets, address string) evidence.Listener {
	t.Helper()
	var found []evidence.Listener
	for _, l := range s.Listeners {
		if l.Address == address {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		t.Fatalf("want one listener on %s, have %+v", address, s.Listeners)
	}
	return found[0]
}

func TestServerThatNeverAccepts(t *testing.T) {
	server, at := start(t, nil, "listen", "never", "tcp4/127.0.0.1:0")
	request := strings.Repeat("r", 33)
	ports := connect(t, 5, "tcp4", at[0], request)
	var s *evidence.Sockets
	// The bytes may take a moment to arrive.
	eventually(t, "five clients with 33 bytes each wait", func() bool {
		var run evidence.ProbeRun
		s, run = Look("/proc", treeOf(server), portOf(t, at[0]))
		if run.Status != evidence.OK {
			t.Fatalf("run is %+v", run)
		}
		f := Frame("/proc", s, nil)
		return f.RxQueueBytes == 5*33
	})
	l := only(t, s, at[0])
	if l.Owner != evidence.OwnerDescriptor || l.PID != server.Process.Pid || l.AcceptQueue != 5 || l.UID != os.Getuid() {
		t.Errorf("listener is %+v, want five clients waiting", l)
	}
	if !s.OwnersKnown || s.SameNetNS == nil || !*s.SameNetNS || s.PID != server.Process.Pid {
		t.Errorf("sockets are %+v", s)
	}
	if len(s.Connections) != 5 {
		t.Fatalf("%d connections", len(s.Connections))
	}
	for _, c := range s.Connections {
		if c.PID != 0 || c.Inode != 0 || !c.Inbound || c.State != "ESTABLISHED" || c.RxQueueBytes != 33 || c.Local != at[0] {
			t.Errorf("connection is %+v", c)
		}
	}
	key := fmt.Sprint(l.Inode)
	if f := Frame("/proc", s, nil); f.AcceptQueues[key] != 5 || f.Inbound != 5 {
		t.Errorf("frame is %+v", f)
	}
	if f := Frame("/proc", s, ports); f.AcceptQueues[key] != 0 || f.Inbound != 0 || f.RxQueueBytes != 0 {
		t.Errorf("frame without our own connections is %+v", f)
	}
}

func TestServerThatAccepts(t *testing.T) {
	server, at := start(t, nil, "listen", "accept", "tcp4/127.0.0.1:0")
	connect(t, 3, "tcp4", at[0], "x")
	eventually(t, "three connections are accepted and have a byte each", func() bool {
		s, _ := Look("/proc", treeOf(server), 0)
		n := 0
		for _, c := range s.Connections {
			if c.Inbound && c.PID == server.Process.Pid && c.Inode != 0 && c.RxQueueBytes == 1 {
				n++
			}
		}
		return n == 3 && only(t, s, at[0]).AcceptQueue == 0
	})
}

func TestIPv4ClientOfAnIPv6Listener(t *testing.T) {
	server, at := start(t, nil, "listen", "never", "tcp/:0", "tcp6/[::1]:0")
	if !strings.HasPrefix(at[0], "[::]") || at[1] == "-" {
		t.Skip("no IPv6 here")
	}
	connect(t, 2, "tcp4", fmt.Sprintf("127.0.0.1:%d", portOf(t, at[0])), "x")
	connect(t, 1, "tcp6", at[1], "x")
	s, _ := Look("/proc", treeOf(server), 0)
	if l := only(t, s, at[0]); l.AcceptQueue != 2 || l.Network != "tcp6" {
		t.Errorf("listener is %+v", l)
	}
	if l := only(t, s, at[1]); l.AcceptQueue != 1 {
		t.Errorf("listener is %+v", l)
	}
	locals := map[string]int{}
	for _, c := range s.Connections {
		if c.Inbound {
			locals[c.Local]++
		}
	}
	if locals[fmt.Sprintf("127.0.0.1:%d", portOf(t, at[0]))] != 2 || locals[at[1]] != 1 {
		t.Errorf("inbound connections by local address: %v", locals)
	}
}

func TestUnixListeners(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path is at most 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "rpc")
	// A newline in a name breaks the line of that socket, and no other.
	server, at := start(t, nil, "listen", "never", "unix/"+filepath.Join(dir, `two\nlines`), "unix/"+path, "tcp4/127.0.0.1:0")
	connect(t, 2, "unix", path, "x")
	s, run := Look("/proc", treeOf(server), 0)
	if run.Status != evidence.OK {
		t.Errorf("run is %+v", run)
	}
	l := only(t, s, path)
	if l.Network != "unix" || l.Owner != evidence.OwnerDescriptor || l.AcceptQueue != 2 || l.PID != server.Process.Pid || l.UID != os.Getuid() {
		t.Errorf("listener is %+v", l)
	}
	only(t, s, filepath.Join(dir, "two"))
	only(t, s, at[2])
	if f := Frame("/proc", s, nil); f.AcceptQueues[fmt.Sprint(l.Inode)] != 2 {
		t.Errorf("frame is %+v", f)
	}
}

func TestPortBelongsToSomebodyElse(t *testing.T) {
	other, at := start(t, nil, "listen", "never", "tcp4/127.0.0.1:0")
	server, _ := start(t, nil, "listen", "never", "tcp4/127.0.0.1:0")
	connect(t, 1, "tcp4", at[0], "x")
	s, run := Look("/proc", treeOf(server), portOf(t, at[0]))
	if run.Status != evidence.OK {
		t.Errorf("run is %+v", run)
	}
	l := only(t, s, at[0])
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", other.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if l.Owner != evidence.OwnerOther || l.PID != other.Process.Pid || l.PIDName != strings.TrimSpace(string(comm)) {
		t.Errorf("listener is %+v, want the one of %d", l, other.Process.Pid)
	}
	if len(s.Connections) != 0 {
		t.Errorf("connections of somebody else: %+v", s.Connections)
	}
}

func TestListenerOfAChildStartedAfterTheTreeWasRead(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	shell, at := startCommand(t, exec.Command("sh", "-c", `"$0" <&0; true`, os.Args[0]), nil, "listen", "never", "tcp4/127.0.0.1:0")
	s, _ := Look("/proc", treeOf(shell), portOf(t, at[0]))
	if l := only(t, s, at[0]); l.Owner != evidence.OwnerDescriptor || l.PID == shell.Process.Pid || l.PID == 0 {
		t.Errorf("listener is %+v, want the one of a child of %d", l, shell.Process.Pid)
	}
}

// A process whose main thread has ended is a zombie to /proc/PID, which then
// has neither net nor fd, while its other threads go on serving.
const headless = `
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_t first;
static void *serve(void *fd) {
	pthread_join(first, NULL);
	struct sockaddr_in a;
	socklen_t n = sizeof a;
	getsockname((int)(long)fd, (struct sockaddr *)&a, &n);
	printf("127.0.0.1:%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (char c; read(0, &c, 1) > 0;);
	_exit(0);
}
int main(void) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	long fd = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t t;
	if (bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 5)) return 1;
	first = pthread_self();
	pthread_create(&t, NULL, serve, (void *)fd);
	pthread_exit(NULL);
}`

func TestServerWhoseMainThreadHasEnded(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	binary := filepath.Join(t.TempDir(), "headless")
	compile := exec.Command(cc, "-pthread", "-o", binary, "-x", "c", "-")
	compile.Stdin = strings.NewReader(headless)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, at := startCommand(t, exec.Command(binary), nil)
	eventually(t, "the main thread is a zombie", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Process.Pid))
		return err == nil && strings.Contains(string(b), ") Z ")
	})
	connect(t, 1, "tcp4", at[0], "x")
	s, run := Look("/proc", treeOf(server), 0)
	if run.Status != evidence.OK || s == nil {
		t.Fatalf("run is %+v", run)
	}
	l := only(t, s, at[0])
	if l.PID != server.Process.Pid || l.AcceptQueue != 1 || s.SameNetNS == nil || !*s.SameNetNS {
		t.Errorf("listener is %+v, sockets %+v", l, s)
	}
	if f := Frame("/proc", s, nil); f == nil || f.Inbound != 1 {
		t.Errorf("frame is %+v", f)
	}
	dial, err := Dialer("/proc", server.Process.Pid, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), "tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestServerThatIsGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip("no true")
	}
	if s, run := Look("/proc", treeOf(cmd), 0); s != nil || run.Status != evidence.Failed {
		t.Errorf("run %+v, sockets %+v", run, s)
	}
}

// ownListener is a listener of this very process, for benchmarks.
func ownListener(b *testing.B) []evidence.Process {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return []evidence.Process{{PID: os.Getpid(), UID: os.Getuid()}}
}

func BenchmarkLook(b *testing.B) {
	procs := ownListener(b)
	for b.Loop() {
		if s, _ := Look("/proc", procs, 0); len(s.Listeners) == 0 {
			b.Fatal("no listener")
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	s, _ := Look("/proc", ownListener(b), 0)
	for b.Loop() {
		if Frame("/proc", s, nil) == nil {
			b.Fatal("no frame")
		}
	}
}

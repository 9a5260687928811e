package socket

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// startElsewhere starts a listener in a network namespace of its own, with its
// loopback up.
func startElsewhere(t *testing.T, address string) (*exec.Cmd, []string) {
	t.Helper()
	needRoot(t)
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip (iproute2)")
	}
	cmd := exec.Command("sh", "-c", `ip link set lo up && exec "$0"`, os.Args[0])
	return startCommand(t, cmd, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, "listen", "accept", address)
}

func TestDialInOurOwnNamespace(t *testing.T) {
	server, at := start(t, nil, "listen", "accept", "tcp4/127.0.0.1:0")
	var own OwnPorts
	dial, err := Dialer("/proc", server.Process.Pid, &own)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), "tcp", fmt.Sprintf("localhost:%d", portOf(t, at[0])))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	port := c.LocalAddr().(*net.TCPAddr).Port
	if set := own.Set(); len(set) != 1 || !set[port] {
		t.Errorf("own ports are %v, want %d", set, port)
	}
	s, _ := Look("/proc", treeOf(server), 0)
	if f := Frame("/proc", s, own.Set()); f.Inbound != 0 {
		t.Errorf("our own connection is counted: %+v", f)
	}
	if f := Frame("/proc", s, nil); f.Inbound != 1 {
		t.Errorf("frame is %+v", f)
	}
}

func TestDialInAnotherNamespace(t *testing.T) {
	server, at := startElsewhere(t, "tcp4/127.0.0.1:0")
	s, run := Look("/proc", treeOf(server), portOf(t, at[0]))
	if run.Status != evidence.OK || s.SameNetNS == nil || *s.SameNetNS {
		t.Fatalf("run %+v, sockets %+v", run, s)
	}
	if l := only(t, s, at[0]); l.Owner != evidence.OwnerDescriptor || l.PID != server.Process.Pid {
		t.Errorf("listener is %+v", l)
	}
	if same := sameNamespace("/proc", server.Process.Pid, ""); same == nil || *same {
		t.Errorf("told apart without the namespace's name: %v", same)
	}

	var own OwnPorts
	dial, err := Dialer("/proc", server.Process.Pid, &own)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c, err := dial(t.Context(), "tcp", at[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "20 connections, seen and known to be our own", func() bool {
		return Frame("/proc", s, nil).Inbound == 20 && Frame("/proc", s, own.Set()).Inbound == 0
	})
	if _, err := dial(t.Context(), "tcp", fmt.Sprintf("localhost:%d", portOf(t, at[0]))); err == nil {
		t.Error("a name was looked up in the wrong namespace")
	}
	if _, err := dial(t.Context(), "tcp", "127.0.0.1:1"); err == nil {
		t.Error("dialled a port on which nobody listens")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(ctx, "tcp", at[0]); err == nil {
		t.Error("dialled after the context had ended")
	}
	nobodyLeftBehind(t)
}

// nobodyLeftBehind checks that no thread of ours stays in a foreign namespace.
func nobodyLeftBehind(t *testing.T) {
	t.Helper()
	main, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if link := namespaceLink("/proc", os.Getppid()); link != "" && main != link {
		t.Errorf("the main thread is in %s, the parent process in %s", main, link)
	}
	eventually(t, "all threads in our own namespace", func() bool {
		links, _ := filepath.Glob("/proc/self/task/*/ns/net")
		for _, l := range links {
			if ns, err := os.Readlink(l); err == nil && ns != main {
				return false
			}
		}
		return len(links) > 0
	})
}

// Goroutines that pile up on all threads make some of the dials begin on the
// main thread, which must not be taken.
func TestDialNeverTakesTheMainThread(t *testing.T) {
	server, at := startElsewhere(t, "tcp4/127.0.0.1:0")
	dial, err := Dialer("/proc", server.Process.Pid, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for range 64 {
		go func() {
			c, err := dial(t.Context(), "tcp", at[0])
			if err == nil {
				c.Close()
			}
			done <- err
			runtime.Gosched()
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	nobodyLeftBehind(t)
}

// asNobody is a copy of the test binary that another user may execute.
func asNobody(t *testing.T) (binary string, attr *syscall.SysProcAttr) {
	t.Helper()
	needRoot(t)
	dir, err := os.MkdirTemp("", "whyhang")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "socket.test")
	from, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(binary, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	return binary, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

func TestDialWithoutTheRight(t *testing.T) {
	server, _ := startElsewhere(t, "tcp4/127.0.0.1:0")
	binary, attr := asNobody(t)
	_, words := startCommand(t, exec.Command(binary), attr, "dial", fmt.Sprint(server.Process.Pid))
	said := strings.Join(words, " ")
	for _, want := range []string{"in another network namespace", "permission denied", fmt.Sprintf("HINT sudo nsenter -t %d -n whyhang %d", server.Process.Pid, server.Process.Pid)} {
		if !strings.Contains(said, want) {
			t.Errorf("%q lacks %q", said, want)
		}
	}
}

func TestLookWithoutTheRight(t *testing.T) {
	server, at := start(t, nil, "listen", "never", "tcp4/127.0.0.1:0", "tcp4/127.0.0.1:0")
	needRoot(t)
	connect(t, 2, "tcp4", at[0], "x")
	binary, attr := asNobody(t)
	_, words := startCommand(t, exec.Command(binary), attr, "look", fmt.Sprint(server.Process.Pid), fmt.Sprint(portOf(t, at[0])))
	var seen struct {
		Sockets *evidence.Sockets
		Run     evidence.ProbeRun
	}
	if err := json.Unmarshal([]byte(strings.Join(words, " ")), &seen); err != nil {
		t.Fatal(err)
	}
	s := seen.Sockets
	if seen.Run.Status != evidence.Partial || seen.Run.Hint != fmt.Sprintf("sudo whyhang %d", server.Process.Pid) ||
		!strings.Contains(seen.Run.Detail, "descriptors of 1 of 1 processes not readable: permission denied") {
		t.Errorf("run is %+v", seen.Run)
	}
	if s.OwnersKnown || s.SameNetNS == nil || !*s.SameNetNS {
		t.Errorf("sockets are %+v", s)
	}
	if l := only(t, s, at[0]); l.Owner != evidence.OwnerUser || l.PID != 0 || l.AcceptQueue != 2 {
		t.Errorf("listener is %+v", l)
	}
	if len(s.Listeners) != 1 || len(s.Connections) != 2 {
		t.Errorf("listeners %+v, connections %+v", s.Listeners, s.Connections)
	}
}

func TestDialAProcessThatIsGone(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Skip("no true")
	}
	if _, err := Dialer("/proc", cmd.Process.Pid, nil); err == nil {
		t.Error("no error")
	}
}

package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// The test binary also plays the other processes of a scenario: it does what
// this variable says until its standard input ends.
const roleVariable = "WHYHANG_TEST_ROLE"

func TestMain(m *testing.M) {
	role := strings.Fields(os.Getenv(roleVariable))
	if len(role) == 0 {
		os.Exit(m.Run())
	}
	switch role[0] {
	case "listen":
		listen(role[1] == "accept", role[2:])
	case "look":
		lookAs(role[1], role[2])
	case "dial":
		dialAs(role[1])
	}
}

// accepted are the connections of a server: one that nobody refers to would be
// closed by the garbage collector.
var accepted sync.Map

// listen listens on every address of the form network/address, prints where
// ("-" for "not possible here"), and accepts or does not.
func listen(accept bool, addresses []string) {
	var at []string
	for _, a := range addresses {
		network, address, _ := strings.Cut(a, "/")
		var lc net.ListenConfig
		if shared, ok := strings.CutSuffix(network, "+reuseport"); ok {
			network = shared
			lc.Control = func(_, _ string, c syscall.RawConn) error {
				return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
			}
		}
		l, err := lc.Listen(context.Background(), network, strings.ReplaceAll(address, `\n`, "\n"))
		if err != nil {
			at = append(at, "-")
			continue
		}
		at = append(at, strconv.Quote(l.Addr().String()))
		if accept {
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					accepted.Store(c, true) // and never read
				}
			}()
		}
	}
	fmt.Println(strings.Join(at, " "))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// lookAs looks at a process from here and prints what it saw.
func lookAs(pid, port string) {
	p, _ := strconv.Atoi(pid)
	n, _ := strconv.Atoi(port)
	s, run := Look("/proc", []evidence.Process{{PID: p, UID: 0}}, n)
	b, _ := json.Marshal(map[string]any{"sockets": s, "run": run})
	fmt.Println(string(b))
}

// dialAs tries to get into the namespace of a process and prints how it went.
func dialAs(pid string) {
	p, _ := strconv.Atoi(pid)
	_, err := Dialer("/proc", p, nil)
	if e, ok := errors.AsType[*NamespaceError](err); ok {
		fmt.Println(e, "HINT", e.Hint())
		return
	}
	fmt.Println(err)
}

// start starts a process with a role and returns it with its first line of
// output. It ends with the test.
func start(t testing.TB, attr *syscall.SysProcAttr, role ...string) (*exec.Cmd, []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Args[0] = filepath.Base(os.Args[0])
	return startCommand(t, cmd, attr, role...)
}

func startCommand(t testing.TB, cmd *exec.Cmd, attr *syscall.SysProcAttr, role ...string) (*exec.Cmd, []string) {
	t.Helper()
	cmd.Env = append(os.Environ(), roleVariable+"="+strings.Join(role, " "))
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("process of the test says nothing: %v", err)
	}
	var words []string
	for _, w := range strings.SplitAfter(strings.TrimSpace(line), " ") {
		w = strings.TrimSpace(w)
		if u, err := strconv.Unquote(w); err == nil {
			w = u
		}
		words = append(words, w)
	}
	return cmd, words
}

// treeOf is the tree of one process.
func treeOf(cmd *exec.Cmd) []evidence.Process {
	return []evidence.Process{{PID: cmd.Process.Pid, UID: os.Getuid()}}
}

// connect opens n connections that end with the test and writes text to each.
func connect(t testing.TB, n int, network, address, text string) (ports map[int]bool) {
	t.Helper()
	ports = map[int]bool{}
	for range n {
		c, err := net.DialTimeout(network, address, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		if _, err := c.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
			ports[a.Port] = true
		}
	}
	return ports
}

// eventually waits for what the kernel or another process does in its own
// time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func portOf(t testing.TB, address string) int {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func needRoot(t testing.TB) {
	t.Helper()
	if unix.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

package socket

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUnixDialer(t *testing.T) {
	// Longer than an address may be, through a directory that is not.
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 60), strings.Repeat("e", 60))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "d")
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	name := "@whyhang-test-" + filepath.Base(t.TempDir())
	server, _ := start(t, nil, "listen", "accept", "unix/"+link+"/s", "unix/"+name)
	pid := server.Process.Pid
	for _, path := range []string{filepath.Join(deep, "s"), link + "/s", name} {
		dial, err := UnixDialer("/proc", pid, path, []int{pid})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dial(context.Background(), "tcp", "localhost:80")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		conn.Close()
		// The same socket, of somebody else's tree.
		dial, _ = UnixDialer("/proc", pid, path, []int{os.Getpid()})
		conn, err = dial(context.Background(), "tcp", "localhost:80")
		var held *UnixHolderError
		if conn != nil || !errors.As(err, &held) || held.PID != pid {
			t.Errorf("%s, held by %d: %v, %v", path, pid, conn, err)
		}
	}
	dial, _ := UnixDialer("/proc", pid, deep+"/none", []int{pid})
	_, err := dial(context.Background(), "tcp", "localhost:80")
	if op := new(net.OpError); !errors.As(err, &op) || op.Op != "dial" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such socket: %v", err)
	}
}

// A relative path is the server's, not ours.
func TestUnixDialerRelative(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	was, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(was, filepath.Join(dir, "s"))
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dial, _ := UnixDialer("/proc", os.Getpid(), relative, []int{os.Getpid()})
	conn, err := dial(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

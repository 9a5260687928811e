package socket

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnixHolderError says that a unix socket leads to another process than one of
// the tree: its path was taken over.
type UnixHolderError struct {
	Path string
	PID  int
}

func (e *UnixHolderError) Error() string {
	return fmt.Sprintf("at %s another process listens by now, %d", e.Path, e.PID)
}

// UnixDialer makes a function that connects to the unix socket that a process
// listens on, whatever network and address it is called with. The path is looked
// up as the process sees it, from its working directory and its root; a name that
// begins with '@' is in the abstract namespace (unix(7)), which belongs to the
// network namespace. Nothing is sent unless one of tree called listen on it
// (SO_PEERCRED).
func UnixDialer(procDir string, pid int, path string, tree []int) (DialFunc, error) {
	dial := func(ctx context.Context) (net.Conn, error) { return dialPath(ctx, procDir, pid, path) }
	if strings.HasPrefix(path, "@") {
		inside, err := Dialer(procDir, pid, nil)
		if err != nil {
			return nil, err
		}
		dial = func(ctx context.Context) (net.Conn, error) { return inside(ctx, "unix", path) }
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		type result struct {
			conn net.Conn
			err  error
		}
		// A directory on a store that does not answer holds the thread for ever; it
		// is left behind.
		done := make(chan result, 1)
		go func() {
			conn, err := dial(ctx)
			if err == nil {
				err = heldBy(conn, path, tree)
			}
			done <- result{conn, err}
		}()
		select {
		case r := <-done:
			if r.err != nil {
				if r.conn != nil {
					r.conn.Close()
				}
				return nil, r.err
			}
			return r.conn, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}

// dialPath goes through the socket's directory, so that neither our own root nor
// the 108 bytes of an address matter.
func dialPath(ctx context.Context, procDir string, pid int, path string) (net.Conn, error) {
	base := filepath.Join(processDir(procDir, pid), "cwd")
	if filepath.IsAbs(path) {
		base = filepath.Join(processDir(procDir, pid), "root")
	}
	dir, err := unix.Open(base+"/"+filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("open", err)}
	}
	defer unix.Close(dir)
	return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(path)))
}

// heldBy says whether one of tree listens at the other end.
func heldBy(conn net.Conn, path string, tree []int) error {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("%s is no unix socket", path)
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var inner error
	if err := raw.Control(func(fd uintptr) { peer, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return err
	}
	if inner != nil {
		return inner
	}
	if !slices.Contains(tree, int(peer.Pid)) {
		return &UnixHolderError{Path: path, PID: int(peer.Pid)}
	}
	return nil
}

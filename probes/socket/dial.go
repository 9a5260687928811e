package socket

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// DialFunc has the form of http.Transport.DialContext.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// OwnPorts remembers the local ports of whyhang's own connections, so that
// they are not taken for clients of the server. The zero value is empty.
type OwnPorts struct {
	mu    sync.Mutex
	ports map[int]bool
}

// Set is a copy of the ports so far. A port stays in it after its connection
// was closed: the server's end lives longer.
func (o *OwnPorts) Set() map[int]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.ports)
}

func (o *OwnPorts) add(a net.Addr) {
	tcp, ok := a.(*net.TCPAddr)
	if o == nil || !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ports == nil {
		o.ports = map[int]bool{}
	}
	o.ports[tcp.Port] = true
}

// NamespaceError says that the network namespace of a process could not be
// entered.
type NamespaceError struct {
	PID int
	Err error
}

func (e *NamespaceError) Error() string {
	return fmt.Sprintf("process %d is in another network namespace, which could not be entered: %v", e.PID, e.Err)
}

func (e *NamespaceError) Unwrap() error { return e.Err }

// Hint is the command that gets into the namespace.
func (e *NamespaceError) Hint() string {
	return fmt.Sprintf("sudo nsenter -t %d -n whyhang %d", e.PID, e.PID)
}

// Dialer makes a function that dials in the network namespace of a process.
// Local ports it uses are added to own, which may be nil. In a foreign
// namespace only IP addresses can be dialled, as names would be looked up by
// our own. Without the right to enter (CAP_SYS_ADMIN) the error is a
// *NamespaceError.
func Dialer(procDir string, pid int, own *OwnPorts) (DialFunc, error) {
	same := sameNamespace(procDir, pid, namespaceLink(procDir, pid))
	if same != nil && *same {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			return remember(own)((&net.Dialer{}).DialContext(ctx, network, address))
		}, nil
	}
	// The open file holds the namespace, so that a later process with the same
	// PID cannot take its place.
	ns, err := os.Open(filepath.Join(processDir(procDir, pid), "ns/net"))
	if err != nil {
		return nil, &NamespaceError{PID: pid, Err: err}
	}
	entered := make(chan error, 1)
	onThreadOf(ns, func(err error) { entered <- err })
	if err := <-entered; err != nil {
		ns.Close()
		return nil, &NamespaceError{PID: pid, Err: err}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		return remember(own)(dialIn(ctx, ns, pid, network, address))
	}, nil
}

func remember(own *OwnPorts) func(net.Conn, error) (net.Conn, error) {
	return func(c net.Conn, err error) (net.Conn, error) {
		if err == nil {
			own.add(c.LocalAddr())
		}
		return c, err
	}
}

func dialIn(ctx context.Context, ns *os.File, pid int, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("in the network namespace of process %d only an IP address and port can be dialled: %w", pid, err)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	onThreadOf(ns, func(err error) {
		var r result
		if r.err = err; err == nil {
			// No second goroutine for a second address: it would run on a
			// thread that is not in the namespace.
			d := net.Dialer{FallbackDelay: -1}
			r.conn, r.err = d.DialContext(ctx, network, address)
		}
		done <- r
	})
	r := <-done
	return r.conn, r.err
}

// onThreadOf calls f on a thread that has entered a network namespace, or with
// the reason why it could not. The thread is never given back: it ends with
// its goroutine, so no other goroutine runs in the foreign namespace.
//
// The main thread must not be the one: it cannot end, and /proc/self/net would
// be the foreign namespace from then on.
func onThreadOf(ns *os.File, f func(error)) {
	enter := func() {
		runtime.LockOSThread()
		f(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET))
		runtime.KeepAlive(ns)
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			enter()
			return
		}
		// Hold the main thread until another one has taken the work.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			enter()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
}

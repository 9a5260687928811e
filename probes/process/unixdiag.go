package process

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// unixSocket is what the kernel tells of a unix socket (sock_diag(7),
// include/uapi/linux/unix_diag.h).
type unixSocket struct {
	Type, State uint8
	// Inode is the socket's own, Peer that of the socket it is connected to, 0
	// if it is to none.
	Inode, Peer uint32
	// ReadBytes lie in it unread; WrittenBytes were written and not yet read by
	// the other end. Nil if the kernel did not say.
	ReadBytes, WrittenBytes *uint32
}

// Attributes of an answer, and what has to be set in a question to get them.
const (
	unixDiagPeer   = 2
	unixDiagQueues = 4

	showPeer   = 0x4
	showQueues = 0x10

	// nlAttrType is the type of an attribute without its flags (netlink(7)).
	nlAttrType = 0x3fff
)

var (
	errNoUnixSocket = errors.New("no unix socket of that number")
	errDiagAnswer   = errors.New("unreadable answer of sock_diag")
)

// unixQuestion asks for one socket by its inode; all bits set is "no cookie".
func unixQuestion(inode uint32) []byte {
	b := make([]byte, 0, 40)
	b = binary.NativeEndian.AppendUint32(b, 40)
	b = binary.NativeEndian.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST)
	b = binary.NativeEndian.AppendUint32(b, inode) // sequence number
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = append(b, unix.AF_UNIX, 0, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, ^uint32(0)) // any state
	b = binary.NativeEndian.AppendUint32(b, inode)
	b = binary.NativeEndian.AppendUint32(b, showPeer|showQueues)
	b = binary.NativeEndian.AppendUint32(b, ^uint32(0))
	return binary.NativeEndian.AppendUint32(b, ^uint32(0))
}

// parseUnixAnswer reads the answer to unixQuestion.
func parseUnixAnswer(b []byte) (unixSocket, error) {
	var s unixSocket
	if len(b) < unix.NLMSG_HDRLEN {
		return s, errDiagAnswer
	}
	length, kind := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint16(b[4:])
	if length < unix.NLMSG_HDRLEN || uint64(length) > uint64(len(b)) {
		return s, errDiagAnswer
	}
	b = b[unix.NLMSG_HDRLEN:length]
	if kind == unix.NLMSG_ERROR && len(b) >= 4 {
		code := -int32(binary.NativeEndian.Uint32(b))
		switch {
		case unix.Errno(code) == unix.ENOENT:
			return s, errNoUnixSocket
		case code > 0 && code < 4096:
			return s, unix.Errno(code)
		}
		return s, errDiagAnswer
	}
	const message = 16 // family, type, state, pad, inode, two of cookie
	if kind != unix.SOCK_DIAG_BY_FAMILY || len(b) < message || b[0] != unix.AF_UNIX {
		return s, errDiagAnswer
	}
	s.Type, s.State, s.Inode = b[1], b[2], binary.NativeEndian.Uint32(b[4:])
	for b = b[message:]; len(b) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])&nlAttrType
		if size < 4 || size > len(b) {
			return s, errDiagAnswer
		}
		value := b[4:size]
		switch {
		case kind == unixDiagPeer && len(value) >= 4:
			s.Peer = binary.NativeEndian.Uint32(value)
		case kind == unixDiagQueues && len(value) >= 8:
			in, out := binary.NativeEndian.Uint32(value), binary.NativeEndian.Uint32(value[4:])
			s.ReadBytes, s.WrittenBytes = &in, &out
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return s, nil
}

// askUnix asks for one socket. The socket for questions has a time-out.
func askUnix(fd int, inode uint32) (unixSocket, error) {
	if err := unix.Sendto(fd, unixQuestion(inode), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return unixSocket{}, err
	}
	buf := make([]byte, 8<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return unixSocket{}, err
		}
		s, err := parseUnixAnswer(buf[:n])
		if err == nil && s.Inode != inode {
			err = errDiagAnswer
		}
		return s, err
	}
}

// openDiag opens a socket for questions, with a time-out, in the network
// namespace of this thread.
func openDiag() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return -1, err
	}
	limit := unix.NsecToTimeval((blockersLimit / 4).Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openDiagIn opens one in another network namespace, named by its file. The
// socket stays in it, the thread goes back. If it cannot, it ends with its
// goroutine; so the main thread, which cannot end, must not be the one.
func openDiagIn(path string) (int, error) {
	there, err := os.Open(path)
	if err != nil {
		return -1, err
	}
	defer there.Close()
	type opened struct {
		fd  int
		err error
	}
	done := make(chan opened, 1)
	var enter func()
	enter = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// Keep the main thread until another one has taken the work.
			taken := make(chan struct{})
			go func() {
				runtime.LockOSThread()
				close(taken)
				enter()
			}()
			<-taken
			runtime.UnlockOSThread()
			return
		}
		var o opened
		var back bool
		o.fd, back, o.err = diagThere(there)
		done <- o
		if back {
			// Once for each lock: this goroutine may have locked it twice.
			runtime.UnlockOSThread()
			runtime.UnlockOSThread()
		}
	}
	go enter()
	o := <-done
	return o.fd, o.err
}

// diagThere enters a namespace, opens a socket and goes back; back says whether
// this thread is where it was.
func diagThere(there *os.File) (fd int, back bool, err error) {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return -1, true, err
	}
	defer here.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return -1, true, err
	}
	fd, err = openDiag()
	return fd, unix.Setns(int(here.Fd()), unix.CLONE_NEWNET) == nil, err
}

// diagWorks tells a kernel without unix_diag, which answers as if there were no
// such socket: it does not know a socket of our own either.
func diagWorks() bool {
	fd, err := openDiag()
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	own, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(own)
	var st unix.Stat_t
	if unix.Fstat(own, &st) != nil || st.Ino>>32 != 0 {
		return false
	}
	_, err = askUnix(fd, uint32(st.Ino))
	return err == nil
}

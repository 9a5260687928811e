package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// socketTimeout is the time-out of a wait at a socket of a process: SO_RCVTIMEO
// or SO_SNDTIMEO (socket(7)); 0 for none. The kernel keeps it to itself, and
// neither /proc nor sock_diag shows it, so the descriptor is borrowed for one
// getsockopt (pidfd_getfd(2), Linux 5.6): it is the same right that shows the
// thread's system call. Nothing is sent, read or changed; the socket stays open
// a moment longer if its owner closes it just then.
func socketTimeout(pid, fd int, reading bool) (time.Duration, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(process)
	borrowed, err := unix.PidfdGetfd(process, fd, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(borrowed)
	option := unix.SO_SNDTIMEO
	if reading {
		option = unix.SO_RCVTIMEO
	}
	limit, err := unix.GetsockoptTimeval(borrowed, unix.SOL_SOCKET, option)
	if err != nil {
		return 0, err
	}
	return time.Duration(limit.Nano()), nil
}

package process

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Find says what stands behind a PID. It never fails: a process that cannot be
// read is hidden, one that is not there is absent.
func (r *Reader) Find(pid int) evidence.Target {
	t := evidence.Target{PID: pid, State: evidence.TargetAbsent}
	if pid <= 0 {
		return t
	}
	buf := make([]byte, statusFileSize)
	dir := r.base(pid, 0)
	s, err := readStat(dir, buf)
	switch {
	case isDenied(err):
		t.State = evidence.TargetHidden // hidepid=1: listed, not readable
		return t
	case err != nil:
		if r.existsUnseen(pid) {
			t.State = evidence.TargetHidden
		}
		return t
	}
	// /proc/TID exists for every thread, though it is not listed.
	if st, err := readStatus(dir, buf); err == nil && st.Tgid > 0 && st.Tgid != pid {
		t.AskedTID, t.PID = pid, st.Tgid
		if s, err = readStat(r.base(st.Tgid, 0), buf); err != nil {
			return t
		}
	}
	if _, _, ok := r.alive(t.PID, s); ok {
		t.State = evidence.TargetAlive
		return t
	}
	t.State = evidence.TargetZombie
	t.WaitStatus = r.waitStatus(t.PID, s)
	t.ParentPID = s.PPID
	if parent, err := readStat(r.base(s.PPID, 0), buf); err == nil {
		t.ParentName = parent.Comm
	}
	return t
}

// existsUnseen asks about a process that /proc does not show. Signal 0 is not
// delivered, it only says whether there is somebody to deliver to (kill(2)):
// EPERM means somebody else's process, which a mount option hides
// (hidepid, proc(5)).
func (r *Reader) existsUnseen(pid int) bool {
	if !r.real {
		return false // the number is of another PID namespace
	}
	return errors.Is(unix.Kill(pid, 0), unix.EPERM)
}

// waitStatus is how a zombie ended, nil when that may not be read: the field
// is 0 then, which would mean exit code 0. The link to its user namespace asks
// for the same right and says so; the files of a zombie that ask for it belong
// to root, whoever's zombie it is.
func (r *Reader) waitStatus(pid int, s stat) *int {
	if s.ExitCode == 0 {
		if _, err := os.Readlink(r.path(pid, "ns/user")); isDenied(err) {
			return nil
		}
	}
	code := s.ExitCode
	return &code
}

package process

import "bytes"

// fdinfo is the part of /proc/PID/fdinfo/N (proc_pid_fdinfo(5)) that tells who
// holds what.
type fdinfo struct {
	// Flags are those of open(2), in the numbers of the kernel.
	Flags uint64
	// Inode is there since Linux 5.14; 0 if not known.
	Inode uint64
	// MountID is the mount of its file as in mountinfo; 0 if not known.
	MountID int
	// Locks are the locks of files that this descriptor holds.
	Locks []fileLock
	// InFlight counts descriptors on their way in messages that lie in this
	// unix socket, unread (scm_fds, since Linux 5.6).
	InFlight uint64
	// PID is the process that a pidfd stands for, 0 if it stands for none.
	PID int
	// UringFiles counts files that an io_uring holds of its own.
	UringFiles uint64
}

// maxLocksOfFD bounds the locks of one descriptor.
const maxLocksOfFD = 1024

// parseFDInfo never fails: what is missing or unreadable stays zero.
func parseFDInfo(b []byte) fdinfo {
	var f fdinfo
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch string(name) {
		case "flags":
			f.Flags, _ = octalNumber(value)
		case "ino":
			f.Inode, _ = number(value)
		case "mnt_id":
			if id, ok := number(value); ok && id < 1<<31 {
				f.MountID = int(id)
			}
		case "scm_fds":
			f.InFlight, _ = number(value)
		case "UserFiles":
			f.UringFiles, _ = number(value)
		case "Pid":
			if pid, ok := number(value); ok && pid < 1<<31 {
				f.PID = int(pid)
			}
		case "lock":
			if l, ok := parseFileLock(value); ok && len(f.Locks) < maxLocksOfFD {
				f.Locks = append(f.Locks, l)
			}
		}
	}
	return f
}

func octalNumber(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 21 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '7' {
			return 0, false
		}
		v = v<<3 | uint64(c-'0')
	}
	return v, true
}

// Access modes in fdinfo's flags (open(2)).
const (
	accessMode = 0o3
	openPath   = 0o10000000 // O_PATH: refers to a file without opening it
)

// reads and writes say whether data can be read or written through a
// descriptor. Whoever opened a FIFO for both counts as both.
func (f fdinfo) reads() bool  { return f.Flags&openPath == 0 && f.Flags&accessMode != 1 }
func (f fdinfo) writes() bool { return f.Flags&openPath == 0 && f.Flags&accessMode != 0 }

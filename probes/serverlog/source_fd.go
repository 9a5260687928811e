package serverlog

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// maxDescriptors is how many descriptors of one process are looked at; a server
// with many connections has thousands, its logs are among the first.
const maxDescriptors = 4096

// descriptor is what /proc tells of an open file without touching it.
type descriptor struct {
	fd     int
	target string // of the link in /proc/PID/fd
	// From fdinfo; inode and mount are "" where the kernel does not name them
	// (Linux before 5.14).
	readOnly     bool
	inode, mount string
}

// suffixes are the endings of a name that make a file open for writing a log.
var suffixes = []string{".log", ".out", ".txt", ".err"}

// deleted is what the kernel appends to the name of a removed file.
const deleted = " (deleted)"

// descriptors reads the links in a process's fd directory. Neither readlink
// nor fdinfo touches the files themselves.
func descriptors(dir string) ([]descriptor, error) {
	names, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return nil, err
	}
	var all []descriptor
	for _, n := range names {
		fd, err := strconv.Atoi(n.Name())
		if err != nil || len(all) >= maxDescriptors {
			continue
		}
		target, err := os.Readlink(dir + "/fd/" + n.Name())
		if err != nil {
			continue // closed meanwhile
		}
		d := descriptor{fd: fd, target: target}
		if mayBeLog(&d) || fd == 1 || fd == 2 {
			d.readFdinfo(dir + "/fdinfo/" + n.Name())
			all = append(all, d)
		}
	}
	return all, nil
}

// readFdinfo reads flags, ino and mnt_id (proc_pid_fdinfo(5)).
func (d *descriptor) readFdinfo(path string) {
	if b, err := os.ReadFile(path); err == nil {
		d.parseFdinfo(b)
	}
}

func (d *descriptor) parseFdinfo(b []byte) {
	for line := range bytes.Lines(b) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "flags":
			flags, err := strconv.ParseUint(value, 8, 64)
			d.readOnly = err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY
		case "ino":
			d.inode = value
		case "mnt_id":
			d.mount = value
		}
	}
}

// mayBeLog says whether the name alone makes a descriptor a candidate: that of
// a file, and on 1 and 2 any file.
func mayBeLog(d *descriptor) bool {
	if unreadKind(d.target) != "" {
		return false
	}
	if d.fd == 1 || d.fd == 2 {
		return true
	}
	name := strings.TrimSuffix(d.target, deleted)
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// unreadKind says in words what a link's target is if it is no file.
func unreadKind(target string) string {
	switch {
	case strings.HasPrefix(target, "pipe:["):
		return "a pipe"
	case strings.HasPrefix(target, "socket:["):
		return "a socket"
	case strings.HasPrefix(target, "/dev/pts/"), strings.HasPrefix(target, "/dev/tty"), target == "/dev/console":
		return "a terminal"
	case target == "/dev/null":
		return "/dev/null"
	case strings.HasPrefix(target, "/dev/") && !strings.HasPrefix(target, "/dev/shm/"):
		return "a device"
	case !strings.HasPrefix(target, "/"):
		return "no file"
	}
	return ""
}

// unreadStream is the record of a standard stream that is no file: what it is,
// and what the operator can do: diagnose the server again, which is the tree's
// root, not the child of it that has the stream.
func unreadStream(pid, root int, d *descriptor, name string) evidence.Unread {
	what := "/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(d.fd)
	kind := unreadKind(d.target)
	u := evidence.Unread{What: what, Status: evidence.Unsupported, Why: name + " goes to " + kind + " (" + printable(d.target) + ")"}
	hint := "whyhang --log FILE " + strconv.Itoa(root)
	switch kind {
	case "/dev/null":
		u.Why = name + " is thrown away (/dev/null)"
	case "a terminal":
		u.Why += "; what was written there cannot be read back"
	case "a pipe", "a socket":
		u.Why += "; whoever reads it keeps the log"
	}
	u.Hint = hint
	return u
}

// printable is a link's target fit for a report.
func printable(s string) string { return cutText(safe([]byte(s)), maxText) }

// unreadProcess is the record of a process whose descriptors cannot be read.
func unreadProcess(pid int, err error) evidence.Unread {
	status, why := probes.Classify(err)
	u := evidence.Unread{What: "/proc/" + strconv.Itoa(pid) + "/fd", Status: status, Why: why}
	if status == evidence.Denied {
		u.Hint = "sudo whyhang " + strconv.Itoa(pid)
	}
	return u
}

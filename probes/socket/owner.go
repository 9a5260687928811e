package socket

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// owners are the sockets that the processes of the tree hold.
type owners struct {
	pid map[uint64]int // by inode; of several holders the first of the tree
	// denied counts processes whose descriptors were not readable, err is what
	// the kernel said.
	denied int
	err    error
}

// ownersOf reads the descriptors of every process.
func ownersOf(procDir string, procs []evidence.Process) owners {
	o := owners{pid: map[uint64]int{}}
	for _, p := range procs {
		err := eachSocket(filepath.Join(processDir(procDir, p.PID), "fd"), func(inode uint64) bool {
			if _, known := o.pid[inode]; !known {
				o.pid[inode] = p.PID
			}
			return true
		})
		// A process that has ended holds nothing.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			o.denied++
			o.err = err
		}
	}
	return o
}

// processDir is the directory of a process. One whose first thread has ended
// while others live shows its net and fd only under those.
func processDir(procDir string, pid int) string {
	dir := filepath.Join(procDir, strconv.Itoa(pid))
	if _, err := os.Lstat(filepath.Join(dir, "net/tcp")); err == nil {
		return dir
	}
	for _, tid := range numbers(filepath.Join(dir, "task")) {
		thread := filepath.Join(dir, "task", strconv.Itoa(tid))
		if _, err := os.Lstat(filepath.Join(thread, "net/tcp")); err == nil {
			return thread
		}
	}
	return dir
}

// eachSocket calls f with the inode of every socket in a descriptor directory
// until f returns false. The links are read and never followed.
func eachSocket(dir string, f func(uint64) bool) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	var refused error
	target := make([]byte, 64)
	for _, name := range names {
		n, err := unix.Readlinkat(int(d.Fd()), name, target)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				refused = err
			}
			continue // closed meanwhile
		}
		if inode, ok := socketInode(target[:n]); ok && !f(inode) {
			return nil
		}
	}
	return refused
}

// socketInode parses "socket:[N]".
func socketInode(link []byte) (uint64, bool) {
	inner, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0, false
	}
	inner, ok = bytes.CutSuffix(inner, []byte("]"))
	if !ok {
		return 0, false
	}
	return decimal(inner, 1<<64-1)
}

// holder finds a process outside the tree that holds the socket. It has to
// read the descriptors of every process there is; 0 if none of those that may
// be read has it.
func holder(procDir string, inode uint64, tree map[int]bool) int {
	for _, pid := range numbers(procDir) {
		if tree[pid] {
			continue
		}
		found := false
		// Not readable is like not found: the caller does not take it for more.
		_ = eachSocket(filepath.Join(procDir, strconv.Itoa(pid), "fd"), func(n uint64) bool {
			found = n == inode
			return !found
		})
		if found {
			return pid
		}
	}
	return 0
}

// descends says whether pid is a descendant of the tree, so one that was
// started after the tree was looked at.
func descends(procDir string, pid int, tree map[int]bool) bool {
	for range 64 {
		b, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
		if err != nil {
			return false
		}
		// pid (comm) state ppid: comm may hold anything, also parentheses.
		f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
		if len(f) < 2 {
			return false
		}
		ppid, ok := decimal(f[1], 1<<31-1)
		if !ok || ppid <= 1 {
			return ok && tree[int(ppid)]
		}
		if tree[int(ppid)] {
			return true
		}
		pid = int(ppid)
	}
	return false
}

// commOf is the name of a process, at most 15 bytes by the kernel's rule.
func commOf(procDir string, pid int) string {
	b, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	return strings.ToValidUTF8(string(b[:min(len(b), 64)]), "?")
}

// numbers are the names in a directory that are process or thread IDs.
func numbers(dir string) []int {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	var ids []int
	for _, name := range names {
		if n, ok := decimal([]byte(name), 1<<31-1); ok && n > 0 {
			ids = append(ids, int(n))
		}
	}
	return ids
}

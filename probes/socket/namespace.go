package socket

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ownNet is our own network namespace. Not /proc/self: that is the main
// thread's, which need not be in the namespace that this thread is in.
const ownNet = "/proc/thread-self"

// namespaceLink is the name of a process's network namespace, as in
// "net:[4026531840]"; "" without the right to see it.
func namespaceLink(procDir string, pid int) string {
	link, err := os.Readlink(filepath.Join(processDir(procDir, pid), "ns/net"))
	if err != nil {
		return ""
	}
	return link
}

// sameNamespace says whether a process is in our own network namespace; nil if
// that cannot be told. link is its namespace's name, if known.
//
// The name needs the right to trace the process. The inode number of
// /proc/PID/net/tcp does not: the kernel makes that file once per namespace
// (proc_net_ns_init) and numbers all such files from one counter
// (proc_alloc_inum).
func sameNamespace(procDir string, pid int, link string) *bool {
	own, err := os.Readlink(ownNet + "/ns/net")
	if err == nil && link != "" {
		same := own == link
		return &same
	}
	theirs, err1 := tableInode(filepath.Join(processDir(procDir, pid), "net/tcp"))
	ours, err2 := tableInode(ownNet + "/net/tcp")
	if err1 != nil || err2 != nil {
		return nil
	}
	same := theirs == ours
	return &same
}

// tableInode is the inode number of a file, which has to be in a procfs: a
// copied tree has numbers of another kind.
func tableInode(path string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	if fs.Type != unix.PROC_SUPER_MAGIC {
		return 0, fmt.Errorf("%s is not in a procfs", path)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

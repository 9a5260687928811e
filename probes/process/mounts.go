package process

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// mount is a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	ID int
	// Device is "major:minor" in hexadecimal, as maps prints it; mountinfo
	// itself has it in decimal.
	Device string
	Point  string
	FSType string
	Source string
}

// mounts reads the mounts a process sees. Reading the list asks none of the
// file systems in it.
func (r *Reader) mounts(pid, via int) ([]mount, error) {
	p, err := r.proc(pid, via)
	if err != nil {
		return nil, err
	}
	infos, err := p.MountInfo()
	if err != nil {
		return nil, err
	}
	return mountsOf(infos), nil
}

func mountsOf(infos []*procfs.MountInfo) []mount {
	mounts := make([]mount, 0, len(infos))
	for _, i := range infos {
		mounts = append(mounts, mount{ID: i.MountID, Device: hexDevice(i.MajorMinorVer), Point: unescape(i.MountPoint), FSType: i.FSType, Source: unescape(i.Source)})
	}
	return mounts
}

// hexDevice turns "0:25" into "00:19".
func hexDevice(decimal string) string {
	major, minor, ok := strings.Cut(decimal, ":")
	a, err1 := strconv.ParseUint(major, 10, 32)
	b, err2 := strconv.ParseUint(minor, 10, 32)
	if !ok || err1 != nil || err2 != nil {
		return ""
	}
	return formatDevice(uint32(a), uint32(b))
}

func formatDevice(major, minor uint32) string { return fmt.Sprintf("%02x:%02x", major, minor) }

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// fsTypeOf is the type of the file system that holds an absolute path: that of
// the longest mount point above it, of the last one if several stand there.
func fsTypeOf(mounts []mount, path string) string {
	if m := mountOf(mounts, path); m != nil {
		return m.FSType
	}
	return ""
}

// mountOf is the mount that holds an absolute path, nil if none does.
func mountOf(mounts []mount, path string) *mount {
	var best *mount
	for i := range mounts {
		if m := &mounts[i]; (best == nil || len(m.Point) >= len(best.Point)) && isBelow(path, m.Point) {
			best = m
		}
	}
	return best
}

func isBelow(path, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(path, "/")
	}
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// rootMount is the ID of the mount at /, the same for two processes if they
// share a mount namespace; 0 if not known. Unlike ns/mnt, mountinfo can be
// read of every process.
func rootMount(mounts []mount) int {
	id := 0
	for _, m := range mounts {
		if m.Point == "/" {
			id = m.ID
		}
	}
	return id
}

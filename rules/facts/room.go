package facts

import (
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Full is a file system of the server on which nothing more can be written.
type Full struct {
	// Index is its place in Kernel.FileSystems; Field names what ran out.
	Index int
	Field string
	What  string // "bytes", "inodes"
	// Log: a standard output or error of the server lies on it.
	Log bool
}

// leastRoom is less than any file needs: file systems that are full keep a
// block or two.
const leastRoom = 64 << 10

// FullOnes are the file systems of the server that have no room left for its
// user. Those that can never be written, and those that count nothing, are not
// full.
func FullOnes(s *evidence.Snapshot) []Full {
	var full []Full
	if s.Kernel == nil {
		return nil
	}
	for i := range s.Kernel.FileSystems {
		fs := &s.Kernel.FileSystems[i]
		if fs.ReadOnly || fs.SizeBytes == 0 {
			continue
		}
		f := Full{Index: i}
		// Only root gets at the reserved blocks, and root in a container mostly
		// does not (CAP_SYS_RESOURCE).
		room, field := fs.AvailBytes, "avail_bytes"
		if fs.UID == 0 && !contained(s, fs.PID) {
			room, field = fs.FreeBytes, "free_bytes"
		}
		switch {
		case room < leastRoom && fs.SizeBytes > leastRoom:
			f.Field, f.What = field, "bytes"
		case fs.Inodes > 0 && fs.FreeInodes == 0:
			f.Field, f.What = "free_inodes", "inodes"
		default:
			continue
		}
		for _, u := range fs.For {
			f.Log = f.Log || strings.HasPrefix(u.What, "fd ")
		}
		full = append(full, f)
	}
	return full
}

func contained(s *evidence.Snapshot, pid int) bool {
	for i := range s.Processes {
		if s.Processes[i].PID == pid {
			return s.Processes[i].Container != ""
		}
	}
	return false
}

// WritesInVain is the position, in the last frame, of a process whose write calls
// all failed during the window; -1 if there is none. The kernel counts the call
// always, and its bytes only if it wrote some.
func WritesInVain(s *evidence.Snapshot, m *Movement) int {
	if !m.Looked {
		return -1
	}
	first, last := &s.Frames[m.First], &s.Frames[m.Last]
	for j := range last.Processes {
		b := &last.Processes[j]
		i := ProcessAt(first, b.PID)
		if i < 0 || b.WriteCalls == nil || b.WriteCharBytes == nil || first.Processes[i].WriteCalls == nil || first.Processes[i].WriteCharBytes == nil {
			continue
		}
		if *b.WriteCalls > *first.Processes[i].WriteCalls && *b.WriteCharBytes == *first.Processes[i].WriteCharBytes {
			return j
		}
	}
	return -1
}

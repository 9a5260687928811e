package serverlog

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxCandidates is how many logs of one server are read.
const maxCandidates = 16

// Candidate is a file that may be a log of the server.
type Candidate struct {
	// Path is its name by the target's view, Open the path it is opened by:
	// /proc/PID/fd/N reaches it in any mount namespace and after it was removed.
	Path string `json:"path"`
	Open string `json:"open"`
	// Source says how it was found: "fd 2 of 4242", "--log".
	Source string `json:"source"`
	// PID is the process it was found at, 0 for --log.
	PID int `json:"pid,omitempty"`
	// Deleted: its last name was removed.
	Deleted bool `json:"deleted,omitempty"`
}

// Named is the candidate that --log names. A relative path is made absolute.
func Named(path string) Candidate {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return Candidate{Path: path, Open: path, Source: "--log"}
}

// Find looks through the descriptors of the processes for files that may be
// logs: the standard streams of each process first, then files open for
// writing whose name ends like a log's. Standard streams that are no files, and
// processes whose descriptors may not be read, are in unread. Several
// descriptors of one file give one candidate. No file of the target is opened
// or asked for its state.
func Find(procDir string, procs []evidence.Process) (candidates []Candidate, unread []evidence.Unread) {
	streams, others := []Candidate{}, []Candidate{}
	seen, told := map[string]bool{}, map[string]bool{}
	for i := range procs {
		p := &procs[i]
		dir := filepath.Join(procDir, strconv.Itoa(p.PID))
		all, err := descriptors(dir)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
				unread = append(unread, unreadProcess(p.PID, err))
			}
			continue
		}
		for _, d := range all {
			isStream := d.fd == 1 || d.fd == 2
			if unreadKind(d.target) != "" {
				// All processes of a tree share a stream: tell it once.
				if isStream && !told[d.target] {
					told[d.target] = true
					unread = append(unread, unreadStream(p.PID, procs[0].PID, &d, streamName(d.fd)))
				}
				continue
			}
			if d.readOnly || seen[d.key(p)] {
				continue
			}
			seen[d.key(p)] = true
			c := d.candidate(dir, p.PID)
			if isStream {
				streams = append(streams, c)
			} else {
				others = append(others, c)
			}
		}
	}
	candidates = append(streams, others...)
	if len(candidates) > maxCandidates {
		unread = append(unread, evidence.Unread{
			What:   strconv.Itoa(len(candidates)-maxCandidates) + " more log files",
			Status: evidence.Skipped, Why: "only the first " + strconv.Itoa(maxCandidates) + " are read",
			Hint: "whyhang --log FILE " + strconv.Itoa(procs[0].PID),
		})
		candidates = candidates[:maxCandidates]
	}
	return candidates, unread
}

// key is the same for two descriptors of one file.
func (d *descriptor) key(p *evidence.Process) string {
	if d.inode != "" && d.mount != "" {
		return d.mount + "\x00" + d.inode
	}
	return p.MntNS + "\x00" + d.target
}

func (d *descriptor) candidate(dir string, pid int) Candidate {
	path, gone := strings.CutSuffix(d.target, deleted)
	fd := strconv.Itoa(d.fd)
	return Candidate{
		Path: printable(path), Open: dir + "/fd/" + fd,
		Source: "fd " + fd + " of " + strconv.Itoa(pid), PID: pid, Deleted: gone,
	}
}

func streamName(fd int) string {
	if fd == 1 {
		return "standard output"
	}
	return "standard error"
}

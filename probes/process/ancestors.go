package process

import "github.com/whyhang/whyhang/probes/evidence"

// maxAncestors bounds the line of parents.
const maxAncestors = 16

// Ancestors are the parent of a process, its parent, and so on, up to but not
// including process 1, which starts everything. Who may not be read ends the line.
func (r *Reader) Ancestors(pid int) []evidence.Ancestor {
	var all []evidence.Ancestor
	buf := make([]byte, statusFileSize)
	s, err := readStat(r.base(pid, 0), buf)
	for err == nil && s.PPID > 1 && len(all) < maxAncestors {
		up := s.PPID
		if s, err = readStat(r.base(up, 0), buf); err == nil {
			all = append(all, evidence.Ancestor{PID: up, Name: s.Comm})
		}
	}
	return all
}

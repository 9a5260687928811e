package process

import (
	"context"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/redact"
)

// maxSuccessors bounds how many new processes are compared with one that has
// ended.
const maxSuccessors = 1024

// successorLimit is how long reading one command line may take.
const successorLimit = time.Second

// Successor finds the process that took the place of one that has ended: it was
// not started before, belongs to the same user and has the same command line. Of
// several the first is meant whose parent is none of them. 0 if there is none.
// parts are the processes of its tree: a child that it left behind has its command
// line as well.
//
// One command line does not prove that it is the same server: two of them may
// run side by side. Therefore nobody asks unless told to.
func (r *Reader) Successor(ctx context.Context, ended *evidence.Process, parts []int) int {
	if len(ended.Argv) == 0 {
		return 0
	}
	stats := r.allStats()
	var younger []stat
	for _, s := range stats {
		if s.Start >= ended.StartTicks && s.PID != ended.PID && !slices.Contains(parts, s.PID) && s.State != 'Z' {
			younger = append(younger, s)
		}
	}
	slices.SortFunc(younger, byBirth)
	younger = younger[:min(len(younger), maxSuccessors)]
	alike := map[int]bool{}
	same := each(ctx, len(younger), successorLimit, func(i int) bool {
		proc, err := r.proc(younger[i].PID, 0)
		if err != nil {
			return false
		}
		argv, err := proc.CmdLine()
		if err != nil || !slices.Equal(redact.Argv(bounded(argv)), ended.Argv) {
			return false
		}
		st, err := readStatus(r.base(younger[i].PID, 0), make([]byte, statusFileSize))
		return err == nil && st.UID == ended.UID
	})
	for i, a := range same {
		if a.Value {
			alike[younger[i].PID] = true
		}
	}
	for _, s := range younger {
		if alike[s.PID] && !alike[s.PPID] {
			return s.PID
		}
	}
	return 0
}

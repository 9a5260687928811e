package process

import (
	"context"

	"github.com/whyhang/whyhang/probes/evidence"
)

// blockedOf takes a system call for a wait that a process must end that can be
// named; false if it is none.
func blockedOf(call) (evidence.Blocked, bool) { return evidence.Blocked{}, false }

// blockers are what the sleepers outside futex calls wait for, by process and
// sleeper.
type blockers []map[int]*evidence.Blocked

func (b blockers) of(process, sleeper int) *evidence.Blocked {
	if process >= len(b) {
		return nil
	}
	return b[process][sleeper]
}

// blockers finds who can end the waits outside futex calls.
func (r *Reader) blockers(ctx context.Context, procs []evidence.Process, a []answer[sleepers]) blockers {
	return nil
}

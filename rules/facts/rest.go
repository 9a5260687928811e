package facts

import (
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Forever tells whether a thread sleeps in a call without a time-out, by the
// call's own arguments: epoll_wait(2), poll(2), accept(2), read(2), recv(2),
// futex(2). False also for what is not known: a call of another kind, or one
// whose time-out is a pointer that is not null. A time-out of the descriptor
// itself (SO_RCVTIMEO) does not show.
func Forever(arch, line string) bool {
	words := strings.Fields(line)
	if len(words) < 7 {
		return false
	}
	arg := func(n int) uint64 {
		v, err := strconv.ParseUint(strings.TrimPrefix(words[1+n], "0x"), 16, 64)
		if err != nil {
			return 1
		}
		return v
	}
	switch CallName(arch, line) {
	case "futex":
		return arg(3) == 0
	case "epoll_wait", "epoll_pwait":
		return int32(uint32(arg(3))) < 0
	case "poll":
		return int32(uint32(arg(2))) < 0
	case "ppoll":
		return arg(2) == 0
	case "select", "pselect6":
		return arg(4) == 0
	case "accept", "accept4", "read", "readv", "recvfrom", "recvmsg", "wait4", "waitid", "pause":
		return true
	}
	return false
}

// AtRest are the processes whose every thread slept without a time-out in the
// first and the last look at threads and did not run in between.
func AtRest(s *evidence.Snapshot, m *Movement) map[int]bool {
	rest := map[int]bool{}
	if !m.Looked {
		return rest
	}
	first, last := ThreadLooks(s, m.First, m.Last)
	if first < 0 || first == last {
		return rest
	}
	for j := range s.Frames[last].Processes {
		p := &s.Frames[last].Processes[j]
		i := ProcessAt(&s.Frames[first], p.PID)
		if i < 0 || len(p.Threads) == 0 || len(p.Threads) != len(s.Frames[first].Processes[i].Threads) {
			continue
		}
		rest[p.PID] = true
		for k := range p.Threads {
			a, b := &s.Frames[first].Processes[i].Threads[k], &p.Threads[k]
			same := a.TID == b.TID && a.State == "S" && b.State == "S" && a.Syscall == b.Syscall && Forever(s.Host.Arch, b.Syscall) &&
				a.Slices != nil && b.Slices != nil && *a.Slices == *b.Slices
			rest[p.PID] = rest[p.PID] && same
		}
	}
	return rest
}

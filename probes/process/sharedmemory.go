package process

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// A lock in shared memory names its owner by an ID of whichever PID namespace
// the owner lives in, and the same number is another thread in each. So whose
// ID it is can only be told if all that have the memory live in one.

// mapsLimit is how long one process may take to show its mappings.
const mapsLimit = time.Second

// sharers knows which memory the processes of a tree have mapped.
type sharers struct {
	ctx  context.Context
	r    *Reader
	maps map[int]answer[[]mapping] // by PID
}

// acrossNamespaces says whether the memory at addr, in the mappings of process
// p, may be mapped as well by a process of another PID namespace.
func (s *sharers) acrossNamespaces(procs []evidence.Process, p *evidence.Process, addr string, maps []mapping) bool {
	at, err := strconv.ParseUint(strings.TrimPrefix(addr, "0x"), 16, 64)
	m := mappingOf(maps, at)
	for j := range procs {
		if sameNamespace(p, &procs[j]) {
			continue
		}
		if err != nil || m == nil {
			return true
		}
		theirs := s.of(&procs[j])
		if !theirs.Done || theirs.Value == nil {
			return true
		}
		if slices.ContainsFunc(theirs.Value, func(o mapping) bool { return o.Inode == m.Inode && o.Device == m.Device }) {
			return true
		}
	}
	return false
}

// of are the mappings of a process; nil if they cannot be read.
func (s *sharers) of(p *evidence.Process) answer[[]mapping] {
	if a, ok := s.maps[p.PID]; ok {
		return a
	}
	a := within(s.ctx, mapsLimit, func() []mapping {
		leave, ok := s.r.enter("maps", p.PID)
		if !ok {
			return nil
		}
		defer leave()
		maps, err := readMaps(s.r.path(p.PID, "maps"))
		if err != nil {
			return nil
		}
		return maps
	})
	if s.maps == nil {
		s.maps = map[int]answer[[]mapping]{}
	}
	s.maps[p.PID] = a
	return a
}

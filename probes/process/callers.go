package process

import (
	"context"
	"encoding/binary"
	"path"
)

// waitingFunctions are the functions of the C library that a thread in a futex
// call can be in.
var waitingFunctions = []string{
	"pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
	"pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np",
	"pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
	"sem_wait", "sem_timedwait", "sem_clockwait", "pthread_barrier_wait", "pthread_once",
}

// callers finds the function a thread waits in, from the return addresses on
// its stack.
type callers struct {
	ctx context.Context
	r   *Reader
	// code is what is known of each process's code, by PID.
	code map[int][]codeRange
}

// codeRange is a function where it is mapped in a process.
type codeRange struct {
	from, to uint64
	name     string
}

func newCallers(ctx context.Context, r *Reader) *callers {
	return &callers{ctx: ctx, r: r, code: map[int][]codeRange{}}
}

// of is the name of the first waiting function that a word of the stack points
// into, "" if none does. The innermost caller stands first.
func (c *callers) of(pid, via int, maps []mapping, stack []byte) string {
	if len(stack) < 8 {
		return ""
	}
	code, ok := c.code[pid]
	if !ok {
		code = c.r.waitingCode(c.ctx, pid, via, maps)
		c.code[pid] = code
	}
	if len(code) == 0 {
		return ""
	}
	low, high := code[0].from, code[0].to
	for _, r := range code {
		low, high = min(low, r.from), max(high, r.to)
	}
	for ; len(stack) >= 8; stack = stack[8:] {
		addr := binary.NativeEndian.Uint64(stack)
		if addr < low || addr > high {
			continue
		}
		for _, r := range code {
			// A return address is behind a call, so never the first byte; it
			// may be the byte behind the function.
			if addr > r.from && addr <= r.to {
				return r.name
			}
		}
	}
	return ""
}

// waitingCode finds the waiting functions in the C library of a process, or in
// its executable if that is a static one.
func (r *Reader) waitingCode(ctx context.Context, pid, via int, maps []mapping) []codeRange {
	var code []codeRange
	libc := false
	for i := range maps {
		m := &maps[i]
		if !m.Execute || m.Inode == 0 {
			continue
		}
		if name := path.Base(m.Path); isGlibc(name) || isPthread(name) {
			libc = libc || isGlibc(name)
			code = append(code, r.waitingCodeIn(ctx, pid, via, m)...)
		}
	}
	if libc {
		return code
	}
	exe := exeMapping(maps)
	if exe == nil {
		return nil
	}
	return r.waitingCodeIn(ctx, pid, via, exe)
}

// exeMapping is the first executable mapping of a file: without a dynamic
// linker, that is the program.
func exeMapping(maps []mapping) *mapping {
	for i := range maps {
		if maps[i].Execute && maps[i].Inode != 0 {
			return &maps[i]
		}
	}
	return nil
}

// waitingCodeIn moves the functions of one file to where it is mapped.
func (r *Reader) waitingCodeIn(ctx context.Context, pid, via int, m *mapping) []codeRange {
	symbols, err := r.files.symbolsOf(ctx, m, r.places(pid, via, m), waitingFunctions)
	if err != nil {
		return nil // no name is no harm
	}
	var code []codeRange
	for _, s := range symbols {
		if s.From < m.Offset || s.To > m.Offset+m.size() || s.To < s.From {
			continue
		}
		code = append(code, codeRange{from: m.Start + s.From - m.Offset, to: m.Start + s.To - m.Offset, name: s.Name})
	}
	return code
}

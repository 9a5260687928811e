package process

import (
	"cmp"
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
)

// waitingFunctions are the functions of the C library that a thread in a futex
// call can be in.
var waitingFunctions = []string{
	"pthread_mutex_lock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
	"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait",
	"pthread_join", "pthread_timedjoin_np", "pthread_clockjoin_np",
	"pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
	"pthread_rwlock_timedrdlock", "pthread_rwlock_timedwrlock", // in musl, the others call these
	"sem_wait", "sem_timedwait", "sem_clockwait", "pthread_barrier_wait", "pthread_once",
	// In the full table of a static program: what takes robust mutexes and
	// others that are not plain.
	"__pthread_mutex_lock_full", "__pthread_mutex_cond_lock_full",
	syscallFunction,
}

// syscallFunction is what programs call that use futexes without the C
// library's locks.
const syscallFunction = "syscall"

// callers finds the function a thread waits in, from the return addresses on
// its stack.
type callers struct {
	ctx context.Context
	r   *Reader
	// code is what is known of each process's code, by PID.
	code map[int]*libcCode
}

// libcCode is where the C library of a process is mapped.
type libcCode struct {
	waiting   []codeRange // sorted by address
	low, high uint64
	// all is the code of the whole library; none for a static program.
	all []codeRange
}

// codeRange is a function where it is mapped in a process.
type codeRange struct {
	from, to uint64
	name     string
}

func newCallers(ctx context.Context, r *Reader) *callers {
	return &callers{ctx: ctx, r: r, code: map[int]*libcCode{}}
}

// of is the name of the innermost waiting function that the thread is in: at
// the program counter, else the first that a word of the stack points into; ""
// if there is none. inLibc: the C library made the system call for itself.
func (c *callers) of(pid, via int, maps []mapping, pc uint64, stack []byte) (name string, inLibc bool) {
	if len(maps) == 0 {
		return "", false
	}
	code, ok := c.code[pid]
	if !ok {
		code = c.r.libcCode(c.ctx, pid, via, maps)
		c.code[pid] = code
	}
	if name = code.at(pc); name != "" {
		return name, name != syscallFunction && code.inLibrary(pc)
	}
	inLibc = code.inLibrary(pc)
	for ; len(stack) >= 8; stack = stack[8:] {
		if name := code.at(binary.NativeEndian.Uint64(stack)); name != "" && name != syscallFunction {
			return name, inLibc
		}
	}
	return "", inLibc
}

// at is the waiting function that a return address lies in.
func (c *libcCode) at(addr uint64) string {
	if addr < c.low || addr > c.high {
		return ""
	}
	// A return address is behind a call, so never the first byte; it may be the
	// byte behind the function.
	i, found := slices.BinarySearchFunc(c.waiting, addr, func(r codeRange, a uint64) int {
		switch {
		case r.to < a:
			return -1
		case r.from >= a:
			return 1
		}
		return 0
	})
	if !found {
		return ""
	}
	return c.waiting[i].name
}

func (c *libcCode) inLibrary(addr uint64) bool {
	return slices.ContainsFunc(c.all, func(r codeRange) bool { return addr >= r.from && addr < r.to })
}

// libcCode finds the waiting functions in the C library of a process, or in
// its executable if that is a static one.
func (r *Reader) libcCode(ctx context.Context, pid, via int, maps []mapping) *libcCode {
	code := &libcCode{}
	libc := false
	for i := range maps {
		m := &maps[i]
		if !m.Execute || m.Inode == 0 {
			continue
		}
		if name := path.Base(m.Path); isGlibc(name) || isPthread(name) || isMusl(name) {
			libc = libc || !isPthread(name)
			code.all = append(code.all, codeRange{from: m.Start, to: m.End})
			code.waiting = append(code.waiting, r.waitingCodeIn(ctx, pid, via, m)...)
		}
	}
	if exe := exeMapping(maps); !libc && exe != nil {
		code.waiting = r.waitingCodeIn(ctx, pid, via, exe)
	}
	slices.SortFunc(code.waiting, func(a, b codeRange) int { return cmp.Compare(a.from, b.from) })
	if n := len(code.waiting); n > 0 {
		code.low = code.waiting[0].from
		for _, w := range code.waiting {
			code.high = max(code.high, w.to)
		}
	}
	return code
}

// isMusl tells musl's loader, which is its C library; Debian calls it libc.so.
func isMusl(name string) bool {
	return name == "libc.so" || strings.HasPrefix(name, "ld-musl-") || strings.HasPrefix(name, "libc.musl-")
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

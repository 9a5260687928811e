package process

import (
	"cmp"
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxCandidates is how many words of a stack are taken for return addresses
// outside the C library. The child sees which of them stand behind a call.
const maxCandidates = 6

// sitesLimit bounds the naming of all functions of one reading. Names that are
// late come with a later one.
const sitesLimit = 4 * time.Second

// sites fills in, for each wait, the native function that asked for it. waits
// are those of the processes in order, as waits makes them. The stacks were
// read with the words; here only files are read, in the child.
func (r *Reader) sites(ctx context.Context, procs []evidence.Process, a []answer[sleepers], words []answer[wordsOf], waits []evidence.Wait) {
	r.files.naming.Lock()
	defer r.files.naming.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sitesLimit)
	defer cancel()
	f := siteFinder{r: r, modules: map[string]*module{}}
	found := make([][]codePlace, len(waits))
	k := 0
	for i := range procs {
		if !a[i].Done {
			continue
		}
		var code []siteCode
		for n := range a[i].Value.waiting {
			if k == len(waits) {
				break
			}
			if n < len(words[i].Value.words) {
				if code == nil {
					code = f.codeOf(procs[i].PID, a[i].Value.via, words[i].Value.maps)
				}
				found[k] = f.candidates(code, a[i].Value.waiting[n].call.PC, words[i].Value.words[n].stack)
			}
			k++
		}
	}
	for _, m := range f.modules {
		r.files.nameFunctions(ctx, m)
	}
	for k := range waits {
		waits[k].Site = siteOf(found[k])
	}
}

type siteFinder struct {
	r       *Reader
	modules map[string]*module
}

// module is a file that code comes from, and what is known of places in it.
type module struct {
	key, path string
	places    []string
	wanted    map[uint64]bool
	known     map[uint64]function
	// unread: the file could not be read. That is not tried again.
	unread bool
}

// siteCode is a mapping of code that is not the C library's.
type siteCode struct {
	from, to, offset uint64
	m                *mapping
	pid, via         int
	module           *module
}

// codePlace is an address in a file of code; counter: it is where the thread is,
// and not where a call returns to.
type codePlace struct {
	module  *module
	offset  uint64
	counter bool
}

// codeOf are the mappings of code of a process, without those of the C library
// and of what wraps its locks.
func (f *siteFinder) codeOf(pid, via int, maps []mapping) []siteCode {
	code := []siteCode{}
	for i := range maps {
		if m := &maps[i]; m.Execute && m.Inode != 0 && !isLockLibrary(path.Base(m.Path)) {
			code = append(code, siteCode{from: m.Start, to: m.End, offset: m.Offset, m: m, pid: pid, via: via})
		}
	}
	return code
}

// isLockLibrary tells the C library, its loader, and the C++ library, whose
// locks are those of the C library.
func isLockLibrary(name string) bool {
	return isGlibc(name) || isPthread(name) || isMusl(name) || strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-2.") ||
		strings.HasPrefix(name, "libstdc++.so") || strings.HasPrefix(name, "libc++.so")
}

// candidates are the innermost addresses on a stack that lie in such code.
func (f *siteFinder) candidates(code []siteCode, pc uint64, stack []byte) []codePlace {
	if len(code) == 0 {
		return nil
	}
	var found []codePlace
	if c := codeAt(code, pc); c != nil {
		found = append(found, codePlace{f.moduleOf(c), pc - c.from + c.offset, true})
	}
	for ; len(stack) >= 8 && len(found) < maxCandidates; stack = stack[8:] {
		addr := binary.NativeEndian.Uint64(stack)
		if c := codeAt(code, addr); c != nil {
			found = append(found, codePlace{f.moduleOf(c), addr - c.from + c.offset, false})
		}
	}
	for _, p := range found {
		if _, known := p.module.known[p.offset]; !known {
			p.module.wanted[p.offset] = true
		}
	}
	return found
}

func codeAt(code []siteCode, addr uint64) *siteCode {
	if addr < code[0].from || addr >= code[len(code)-1].to {
		return nil
	}
	i, ok := slices.BinarySearchFunc(code, addr, func(c siteCode, a uint64) int {
		switch {
		case c.to <= a:
			return -1
		case c.from > a:
			return 1
		}
		return 0
	})
	if !ok {
		return nil
	}
	return &code[i]
}

// moduleOf is the module of a mapping, one for all processes that have mapped
// the same file.
func (f *siteFinder) moduleOf(c *siteCode) *module {
	if c.module == nil {
		key := c.m.Device + " " + strconv.FormatUint(c.m.Inode, 10) + " " + c.m.Path
		c.module = f.modules[key]
		if c.module == nil {
			c.module = f.r.files.moduleOf(key, c.m, f.r.places(c.pid, c.via, c.m))
			f.modules[key] = c.module
		}
	}
	return c.module
}

// siteOf is the first place that is a return address of code that is no lock
// of the C library.
func siteOf(places []codePlace) *evidence.Site {
	for _, p := range places {
		fn, known := p.module.known[p.offset]
		if known && (p.counter || fn.Behind) && !isLockFunction(fn.Name) || !known && p.module.unread {
			return &evidence.Site{Module: path.Base(p.module.path), OffsetBytes: p.offset, Function: fn.Name}
		}
	}
	return nil
}

// isLockFunction tells functions of a C library that was linked into the
// program.
func isLockFunction(name string) bool {
	name = strings.TrimLeft(name, "_")
	for _, part := range []string{"pthread_", "lll_lock", "futex_", "sem_wait", "sem_timedwait", "sem_clockwait", "new_sem_", "do_futex_wait",
		"timedwait", "syscall_cp", "GI_", "libc_", "internal_syscall"} {
		if strings.HasPrefix(name, part) {
			return true
		}
	}
	return name == syscallFunction || name == "poll" || name == "read" || name == "write" || name == "wait4" || name == "waitpid" || name == "wait"
}

// moduleOf keeps what is known of a file for as long as the Reader lives.
func (f *Files) moduleOf(key string, m *mapping, places []string) *module {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.modules[key]
	if known == nil {
		known = &module{key: key, path: m.Path, known: map[uint64]function{}, wanted: map[uint64]bool{}}
		if f.modules == nil {
			f.modules = map[string]*module{}
		}
		f.modules[key] = known
	}
	known.places = places
	return known
}

// nameFunctions asks the child for what is wanted of a module. The caller holds
// naming.
func (f *Files) nameFunctions(ctx context.Context, m *module) {
	if len(m.wanted) == 0 || m.unread || ctx.Err() != nil {
		return
	}
	offsets := make([]uint64, 0, len(m.wanted))
	for at := range m.wanted {
		offsets = append(offsets, at)
	}
	slices.SortFunc(offsets, cmp.Compare)
	offsets = offsets[:min(len(offsets), maxPlaces)]
	a, err := f.ask(ctx, elfLimit, path.Dir(m.path), fileQuestion{Op: opFunctions, Places: m.places, Offsets: offsets})
	if err != nil {
		m.unread = ctx.Err() == nil
		return
	}
	for _, fn := range a.Functions {
		m.known[fn.At] = fn
		delete(m.wanted, fn.At)
	}
}

package process

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/python"
)

// pythonLimit is how long the search for CPython in one file may take. It takes
// 20 ms, once for each file; the lock words of the process wait for it.
const pythonLimit = time.Second

// readPython reads the CPython of a process, if it has one, and what its
// sleepers wait for in Python's terms. Without stacks it leaves out what only
// names places, and who is in which `with` block.
func (r *Reader) readPython(m *memory, w *wordsOf, p *evidence.Process, s *sleepers, stacks bool) {
	at, version, ok := r.findPython(p.PID, s.via, m.maps)
	if !ok {
		return
	}
	limits := python.DefaultLimits
	if !stacks {
		limits.Frames = 0
	}
	read := python.Read(pythonMemory{m}, at, version, limits)
	defer read.Done()
	w.python = &read.Process
	w.python.PID = p.PID
	if w.python.Unread != "" {
		w.python.Unread += fmt.Sprintf("; try: py-spy dump --nonblocking --pid %d", p.PID)
	}
	nsTIDs := r.nsTIDs(p, s, w)
	for i := range s.waiting {
		sl := &s.waiting[i]
		if sl.futex == nil || sl.futex.Call != "futex" {
			continue
		}
		w.words[i].python = read.Lock(python.Wait{
			NSTID: nsTIDs(sl.tid), Addr: sl.call.Args[0], SP: sl.call.SP, Timed: sl.futex.Timed,
		})
	}
}

// nsTIDs turns TIDs of whyhang's /proc into those of the process's namespace.
func (r *Reader) nsTIDs(p *evidence.Process, s *sleepers, w *wordsOf) func(int) int {
	if !inNamespace(p) {
		return func(tid int) int { return tid }
	}
	if w.inNS == nil {
		w.inNS, _ = r.namespaceTIDs(p.PID, s.tids)
	}
	back := make(map[int]int, len(w.inNS))
	for ns, tid := range w.inNS {
		back[tid] = ns
	}
	return func(tid int) int { return back[tid] }
}

// pythonMemory is the memory of a process as package python reads it: as
// little of file-backed pages as everything else.
type pythonMemory struct{ m *memory }

func (p pythonMemory) Read(addr uint64, buf []byte) error { return p.m.read(addr, buf) }

// findPython finds the data of CPython in a process: in libpython, else in a
// program called python, else in the program, which may have it inside.
func (r *Reader) findPython(pid, via int, maps []mapping) (python.Symbols, python.Version, bool) {
	var version python.Version
	var tries [3][]*mapping
	for i := range maps {
		m := &maps[i]
		if m.Inode == 0 || !m.Execute {
			continue
		}
		name := path.Base(m.Path)
		switch {
		case strings.HasPrefix(name, "libpython"):
			tries[0] = append(tries[0], m)
		case strings.HasPrefix(name, "python"):
			tries[1] = append(tries[1], m)
		}
		if v := python.VersionOfName(m.Path); version == (python.Version{}) {
			version = v
		}
	}
	if exe := exeMapping(maps); exe != nil {
		tries[2] = append(tries[2], exe)
	}
	for _, try := range tries {
		for _, m := range try {
			f, err := r.files.pythonOf(m, r.places(pid, via, m))
			if err != nil || f.Data["_PyRuntime"] == 0 {
				continue
			}
			base := m.Start - m.Offset
			address := func(name string) uint64 {
				if f.Data[name] == 0 {
					return 0
				}
				return base + f.Data[name]
			}
			if v := python.VersionOfHex(f.Hex); v != (python.Version{}) {
				v.FreeThreaded = version.FreeThreaded
				version = v
			}
			return python.Symbols{
				Runtime: address("_PyRuntime"), CodeType: address("PyCode_Type"),
				Builtin: address("PyCFunction_Type"), Method: address("PyMethod_Type"), Head: f.Head,
			}, version, true
		}
	}
	return python.Symbols{}, version, false
}

// pythonOf looks for CPython in a mapped file, once for each file.
func (f *Files) pythonOf(m *mapping, places []string) (pythonFile, error) {
	key := m.Device + " " + strconv.FormatUint(m.Inode, 10) + " " + m.Path
	f.mu.Lock()
	found, ok := f.pythons[key]
	f.mu.Unlock()
	if ok {
		return found, nil
	}
	a, err := f.ask(context.Background(), pythonLimit, path.Dir(m.Path), fileQuestion{Op: opPython, Places: places})
	if err != nil {
		return pythonFile{}, err
	}
	if a.Python != nil {
		found = *a.Python
	}
	f.mu.Lock()
	if f.pythons == nil {
		f.pythons = map[string]pythonFile{}
	}
	f.pythons[key] = found
	f.mu.Unlock()
	return found, nil
}

// python fills in the TIDs of whyhang's /proc in what was read of the CPython
// of process i.
func (o *owners) python(i int, read *evidence.PythonProcess) {
	if g := read.GIL; g != nil {
		g.HolderTID = o.thread(i, g.HolderNSTID)
	}
	for n := range read.Threads {
		read.Threads[n].TID = o.thread(i, read.Threads[n].NSTID)
	}
}

// pythonLock does the same for a lock that a thread waits for.
func (o *owners) pythonLock(i int, k *evidence.PythonLock) *evidence.PythonLock {
	if k == nil {
		return nil
	}
	if k.OwnerNSTID != 0 {
		k.OwnerTID = o.thread(i, k.OwnerNSTID)
	}
	for n, id := range k.Inside {
		k.Inside[n] = o.thread(i, id)
	}
	return k
}

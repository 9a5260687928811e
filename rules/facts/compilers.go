package facts

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// compilerNames are the commands that only run while something is built.
var compilerNames = []string{"nvcc", "cicc", "ptxas", "fatbinary", "cudafe++", "nvlink", "ninja", "cc1plus", "cc1", "g++", "c++", "clang++", "clang", "ld", "ld.lld", "lld", "as", "collect2", "hipcc", "tilelang", "rustc", "cargo"}

func isCompiler(name string) bool { return slices.Contains(compilerNames, name) }

// Compilers are the living compilers of the tree.
type Compilers struct {
	// At are their positions in Snapshot.Processes.
	At []int
	// Stopped: every one of them was stopped or traced in every look.
	Stopped bool
	// Builders are the processes that started them: the nearest ancestors in
	// the tree that are no compilers themselves.
	Builders []int
}

func compilersOf(s *evidence.Snapshot, f *Facts) Compilers {
	c := Compilers{}
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID == s.Target.PID || !f.Tree.Alive[p.PID] || !isCompiler(p.Name) {
			continue
		}
		c.At = append(c.At, i)
		if b := builderOf(s, f, p); b != 0 && !slices.Contains(c.Builders, b) {
			c.Builders = append(c.Builders, b)
		}
	}
	c.Stopped = len(c.At) > 0
	for _, i := range c.At {
		// A driver of compilers waits for those that are stopped.
		if !StoppedThroughout(s, s.Processes[i].PID) && !waitsForStopped(s, c.At, i) {
			c.Stopped = false
		}
	}
	return c
}

// builderOf goes up from a compiler, past shells, to who asked for it.
func builderOf(s *evidence.Snapshot, f *Facts, p *evidence.Process) int {
	for range 16 {
		i, ok := f.Tree.Index[p.PPID]
		if !ok {
			return 0
		}
		p = &s.Processes[i]
		if !isCompiler(p.Name) && p.Name != "sh" && p.Name != "bash" && p.Name != "dash" {
			return p.PID
		}
	}
	return 0
}

// StoppedThroughout tells whether a process was stopped in every look.
func StoppedThroughout(s *evidence.Snapshot, pid int) bool {
	for n := range s.Frames {
		j := ProcessAt(&s.Frames[n], pid)
		if j < 0 || s.Frames[n].Processes[j].State != "T" && s.Frames[n].Processes[j].State != "t" {
			return false
		}
	}
	return len(s.Frames) > 0
}

// waitsForStopped tells whether a compiler has a compiler below it, all of
// which are stopped.
func waitsForStopped(s *evidence.Snapshot, compilers []int, i int) bool {
	waits := false
	for _, k := range compilers {
		if s.Processes[k].PPID != s.Processes[i].PID {
			continue
		}
		if !StoppedThroughout(s, s.Processes[k].PID) && !waitsForStopped(s, compilers, k) {
			return false
		}
		waits = true
	}
	return waits
}

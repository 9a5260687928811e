package caches

import (
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxPlaces bounds how many directories are looked at.
const maxPlaces = 32

// Find lists where the processes of a tree would keep caches, whether the
// directories exist or not. It touches no file. A tree without any Python has
// the caches of native programs only, but for those that a variable names.
func Find(procs []evidence.Process) []evidence.Cache {
	python := slices.ContainsFunc(procs, isPython)
	var found []evidence.Cache
	for i := range procs {
		p := &procs[i]
		if p.Kernel || len(p.Env) == 0 {
			continue
		}
		for l := range libraries {
			lib := &libraries[l]
			dir, named := lib.in(p.Env)
			if dir == "" || dir == "/" || named == "" && !python && !lib.native {
				continue
			}
			c := evidence.Cache{Path: dir, Library: lib.name, Kind: lib.kind, PID: p.PID, Variable: named}
			if len(found) < maxPlaces && !covered(found, &c, procs) {
				found = append(found, c)
			}
		}
	}
	return found
}

// covered: the directory, or one above it, is in the list already.
func covered(found []evidence.Cache, c *evidence.Cache, procs []evidence.Process) bool {
	for i := range found {
		f := &found[i]
		if f.Kind != c.Kind || mountNamespace(procs, f.PID) != mountNamespace(procs, c.PID) {
			continue
		}
		if f.Path == c.Path || strings.HasPrefix(c.Path, f.Path+"/") && libraryNamed(c.Library).baton == libraryNamed(f.Library).baton {
			return true
		}
	}
	return false
}

func mountNamespace(procs []evidence.Process, pid int) string {
	for i := range procs {
		if procs[i].PID == pid {
			return procs[i].MntNS
		}
	}
	return ""
}

// isPython: an interpreter, or a process that has one in it, as a worker that
// rewrote its title.
func isPython(p evidence.Process) bool {
	if strings.HasPrefix(p.Name, "python") || len(p.Argv) > 0 && strings.Contains(p.Argv[0], "python") {
		return true
	}
	return slices.ContainsFunc(p.Libraries, func(l string) bool { return strings.HasPrefix(l, "libpython") || strings.HasPrefix(l, "libtorch") }) ||
		strings.Contains(p.Exe, "python")
}

package facts

import (
	"slices"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// LockFile is a lock file in a cache that stood there in every look, and what
// is known of who waits for it and who could remove it.
type LockFile struct {
	// Cache and Lock are the places in Snapshot.Caches.
	Cache, Lock int
	*evidence.LockFile
	// AgeS is the time since it was made, in seconds.
	AgeS float64
	// Older: it is older than every process of the tree, so none of them made
	// it.
	Older bool
	// Waits are threads of the tree that nap as the waiter for such a lock does.
	Waits []Nap
	// Outside are holders that are not of the tree, Inside those that are.
	Inside, Outside []evidence.FileHolder
	// Doubt says why it cannot be told that its maker is gone; "" if it is.
	Doubt string
}

// A waiter of file_baton wakes ten times a second (wait_seconds=0.1); on a
// crowded machine later, or interrupted once more. One of the filelock package
// wakes twenty times (poll_interval=0.05); no deadlock is made of that, so its
// range is wide.
const (
	batonSlowest, batonFastest       = 5, 13
	filelockSlowest, filelockFastest = 5, 35
)

// buildHours is the age from which no build is taken to be under way any more:
// the longest of single extensions take minutes.
const buildHours = 2

func lockFilesOf(s *evidence.Snapshot, f *Facts) []LockFile {
	var all []LockFile
	for i := range s.Caches {
		c := &s.Caches[i]
		if c.Looks < 2 {
			continue
		}
		for k := range c.Locks {
			l := &c.Locks[k]
			if l.First.After(c.First) || l.Last.Before(c.Last) {
				continue // it came or went meanwhile
			}
			lf := LockFile{Cache: i, Lock: k, LockFile: l, AgeS: s.Taken.Sub(l.Modified).Seconds(), Older: olderThanAll(s, l.Modified)}
			for _, h := range l.Holders {
				if l.Kind == evidence.LockKernel && !h.Locks {
					continue
				}
				if _, ours := f.Tree.Index[h.PID]; ours {
					lf.Inside = append(lf.Inside, h)
				} else {
					lf.Outside = append(lf.Outside, h)
				}
			}
			lf.Waits = napsFor(s, f, l, c)
			lf.Doubt = lf.doubt(c)
			if l.Kind == evidence.LockPresence || len(l.Holders) > 0 {
				all = append(all, lf)
			}
		}
	}
	return all
}

// doubt says why the maker of a lock may still live.
func (l *LockFile) doubt(c *evidence.Cache) string {
	switch {
	case l.Kind != evidence.LockPresence:
		return "the lock of the kernel counts, not the file"
	case len(l.Inside)+len(l.Outside) > 0:
		return "a living process has it open"
	case l.Asked == nil:
		return "it is not known who has it open"
	case c.Remote:
		return "the directory is on " + c.FSType + ": a process of another machine may have made it"
	case l.Unseen != "" && !(l.Older && l.AgeS > buildHours*3600):
		return l.Unseen
	case !l.Older && !l.Executable:
		// file_baton's own file is open as long as it is held. Another
		// program's need not be.
		return "a process of the tree may have made it"
	}
	return ""
}

// WaitedFor: more than a rhythm says that a thread waits for it: Python's own
// stack names the waiter. Where that stack is not known, the rhythm is enough in
// a directory that the server was told to use; a home directory holds what any
// program has left behind. A stack that is known and names another place speaks
// against it: whoever waits for a file or for a peer of its own naps as well.
func (l *LockFile) WaitedFor(s *evidence.Snapshot) bool {
	named := s.Caches[l.Cache].Variable != ""
	return slices.ContainsFunc(l.Waits, func(n Nap) bool { return n.InWaiter || named && !n.InPython })
}

// olderThanAll: start times are exact to a second, and file systems to two.
func olderThanAll(s *evidence.Snapshot, at time.Time) bool {
	for i := range s.Processes {
		started := s.Processes[i].Started
		if started.IsZero() || at.After(started.Add(-2*time.Second)) {
			return false
		}
	}
	return len(s.Processes) > 0
}

// napsFor are the threads that nap in the rhythm of a waiter for the lock, in
// processes that do not hold it. Python's stack decides where it is known to be
// in one of these waits or in another.
func napsFor(s *evidence.Snapshot, f *Facts, l *evidence.LockFile, c *evidence.Cache) []Nap {
	slowest, fastest := float64(batonSlowest), float64(batonFastest)
	if l.Kind == evidence.LockKernel {
		slowest, fastest = filelockSlowest, filelockFastest
	}
	var naps []Nap
	for _, n := range f.Naps {
		if n.PerS < slowest || n.PerS > fastest || slices.ContainsFunc(l.Holders, func(h evidence.FileHolder) bool { return h.PID == n.PID }) {
			continue
		}
		var in string
		in, n.InPython = waitsInPython(s, n.PID, n.TID)
		switch {
		case in == "file_baton.py" && l.Kind == evidence.LockPresence, in == "filelock" && l.Kind == evidence.LockKernel:
		case in == "file_baton.py" || in == "filelock":
			continue
		case n.TID != n.PID:
			continue // a watchdog, as many servers have; who loads, loads in the first thread
		case in == "elsewhere" || !mayUse(s, f, n.PID, c) || supervises(s, f, n.PID):
			continue
		}
		n.InWaiter = in == "file_baton.py" || in == "filelock"
		naps = append(naps, n)
	}
	return naps
}

// supervises: the process has children beside those that every Python server
// has. Launchers look ten times a second whether theirs still live
// (text-generation-launcher does).
func supervises(s *evidence.Snapshot, f *Facts, pid int) bool {
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PPID == pid && f.Tree.Alive[p.PID] && !engines.IsHelper(p) {
			return true
		}
	}
	return false
}

// waitsInPython is the library in which a Python thread waits for a lock file,
// "elsewhere" for one that sleeps in an installed package, which would be torch
// otherwise; "" if it is in none, or not known. known tells these two apart.
func waitsInPython(s *evidence.Snapshot, pid, tid int) (in string, known bool) {
	if len(s.Waits) == 0 {
		return "", false
	}
	look := &s.Waits[len(s.Waits)-1]
	for i := range look.Python {
		if look.Python[i].PID != pid {
			continue
		}
		for j := range look.Python[i].Threads {
			t := &look.Python[i].Threads[j]
			if t.TID != tid {
				continue
			}
			for _, frame := range t.Frames {
				switch {
				case strings.HasSuffix(frame.File, "/file_baton.py"):
					return "file_baton.py", true
				case strings.Contains(frame.File, "/filelock/"):
					return "filelock", true
				}
			}
			if len(t.Frames) > 0 && (strings.Contains(t.Frames[0].File, "/site-packages/") || strings.Contains(t.Frames[0].File, "/dist-packages/")) {
				return "elsewhere", true
			}
			known = len(t.Frames) > 0
		}
	}
	return "", known
}

// mayUse: the process is of an engine, has the library, or names the
// directory. Any program may nap, and any user may have an old lock file.
func mayUse(s *evidence.Snapshot, f *Facts, pid int, c *evidence.Cache) bool {
	i, ok := f.Tree.Index[pid]
	if !ok {
		return false
	}
	p := &s.Processes[i]
	if p.Exe != "" && !strings.Contains(p.Exe, "python") && !slices.ContainsFunc(p.Libraries, func(l string) bool { return strings.HasPrefix(l, "libpython") }) {
		return false // no Python, and so no torch extension
	}
	return f.Engine.Known != nil || c.Variable != "" && p.Env[c.Variable] != "" ||
		slices.ContainsFunc(p.Libraries, func(l string) bool { return strings.HasPrefix(l, "libtorch") })
}

package caches

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// lookLimit is how long one look at all directories may take. The child keeps
// its own, shorter, limits; what takes longer hangs.
const lookLimit = 4 * time.Second

// maxLeft bounds how many children may be left behind in one run.
const maxLeft = 2

// Probe looks at caches again and again, in a child of ourselves. It is for
// one goroutine.
type Probe struct {
	caches []evidence.Cache
	asked  []asked
	dead   map[int]bool // directories that hung a child
	asker  probes.Asker
}

// Look is what one look saw of one cache.
type Look struct {
	// Cache is the index into what New was given.
	Cache   int
	FSType  string
	Remote  bool
	At      time.Time
	Frame   evidence.CacheFrame
	Locks   []evidence.LockFile
	More    int
	Partial []Partial
	Unread  *evidence.Unread
}

// Partial is an unfinished download with what names it among the files that
// processes have open.
type Partial struct {
	Path  string
	Inode uint64
	UID   int
}

// New prepares looks at these caches of processes below procDir.
func New(procDir string, found []evidence.Cache, procs []evidence.Process) *Probe {
	p := &Probe{caches: found, dead: map[int]bool{}, asker: probes.Asker{Name: ChildName, MaxLeft: maxLeft}}
	own, _ := os.Readlink("/proc/self/ns/mnt")
	for i := range found {
		a := asked{ID: i, Path: found[i].Path, Library: found[i].Library,
			Roots: []string{procDir + "/" + strconv.Itoa(found[i].PID) + "/root"}}
		// The root of a foreign process is closed to ordinary users, its path
		// is not, if both see the same files.
		if ns := mountNamespace(procs, found[i].PID); ns == own || ns == "" && procDir == "/proc" {
			a.Roots = append(a.Roots, "/")
		}
		p.asked = append(p.asked, a)
	}
	return p
}

// Close ends the child.
func (p *Probe) Close() { p.asker.Close() }

// Look takes one look at all caches that exist.
func (p *Probe) Look(ctx context.Context) ([]Look, evidence.ProbeRun) {
	start := time.Now()
	run := evidence.ProbeRun{Name: evidence.ProbeFiles, Status: evidence.OK}
	looks, err := p.look(ctx)
	run.TookMS = probes.Milliseconds(time.Since(start))
	switch stuck := (*probes.StuckError)(nil); {
	case errors.As(err, &stuck):
		run.Status, run.Detail = evidence.Timeout, "a cache directory does not answer: "+stuck.Error()
		run.Hint = "stat -f " + probes.Quoted(stuck.Child.Stage)
	case err != nil:
		run.Status, run.Detail = evidence.Failed, err.Error()
	default:
		for _, l := range looks {
			if l.Unread != nil && run.Status == evidence.OK {
				run.Status, run.Detail, run.Hint = evidence.Partial, l.Unread.What+": "+l.Unread.Why, l.Unread.Hint
			}
		}
	}
	return looks, run
}

func (p *Probe) look(ctx context.Context) ([]Look, error) {
	var q question
	for _, a := range p.asked {
		if !p.dead[a.ID] {
			q.Asked = append(q.Asked, a)
		}
	}
	if len(q.Asked) == 0 {
		return nil, nil
	}
	var a answer
	if err := p.asker.Ask(ctx, lookLimit, q, &a); err != nil {
		stuck, hung := errors.AsType[*probes.StuckError](err)
		crash, crashed := errors.AsType[*probes.CrashError](err)
		switch {
		case hung && ctx.Err() == nil:
			p.bury(stuck.Child.Stage)
		case crashed:
			p.bury(crash.Stage)
		}
		return nil, err
	}
	var looks []Look
	for i := range a.Found {
		if a.Found[i].ID < 0 || a.Found[i].ID >= len(p.caches) {
			continue
		}
		if l, ok := p.seen(&a.Found[i]); ok {
			looks = append(looks, l)
		}
	}
	return looks, nil
}

// bury takes a directory that hung the child out of the next looks.
func (p *Probe) bury(stage string) {
	for _, a := range p.asked {
		if a.Path == stage {
			p.dead[a.ID] = true
		}
	}
}

// seen turns an answer into evidence; false for a directory that does not
// exist.
func (p *Probe) seen(f *found) (Look, bool) {
	c := &p.caches[f.ID]
	l := Look{Cache: f.ID, FSType: f.FSType, Remote: f.Remote, At: time.Unix(0, f.At), More: f.More}
	if f.Errno != 0 {
		errno := syscall.Errno(f.Errno)
		if errno == syscall.ENOENT || errno == syscall.ENOTDIR {
			return l, false
		}
		status, why := probes.Classify(errno)
		l.At = time.Now()
		l.Unread = &evidence.Unread{What: c.Path, Status: status, Why: why}
		if status == evidence.Denied {
			l.Unread.Hint = fmt.Sprintf("sudo whyhang %d", c.PID)
		}
		return l, true
	}
	l.Frame = evidence.CacheFrame{Path: c.Path, At: l.At, Files: f.Files, Bytes: f.Bytes, Cut: f.Cut}
	if f.Newest != 0 {
		at := time.Unix(0, f.Newest)
		l.Frame.Newest = &at
	}
	lib := libraryNamed(c.Library)
	for _, s := range f.Locks {
		l.Locks = append(l.Locks, evidence.LockFile{Path: s.Path, Kind: lib.lockKind(s.Path), Modified: time.Unix(0, s.Modified),
			Inode: s.Inode, UID: s.UID, Executable: s.Executable, First: l.At, Last: l.At})
	}
	for _, s := range f.Partial[:min(len(f.Partial), maxPartial)] {
		l.Frame.Partial = append(l.Frame.Partial, evidence.PartialFile{Path: s.Path, SizeBytes: s.Bytes, AllocatedBytes: s.Allocated, Modified: time.Unix(0, s.Modified)})
		l.Partial = append(l.Partial, Partial{s.Path, s.Inode, s.UID})
	}
	return l, true
}

// maxPartial bounds the unfinished downloads in a frame: those beyond it are
// older and were given up.
const maxPartial = 32

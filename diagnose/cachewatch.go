package diagnose

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/caches"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/rules/engines"
)

// cacheWatch looks at the caches beside the frames: a directory may take long,
// and one on a dead store for ever. A frame takes the last look that was done.
type cacheWatch struct {
	// share: how often longer than a look at holders the pause after it is, 0 for
	// holderShare.
	share int
	asked chan struct{} // a look is wanted
	ended chan struct{}

	mu     sync.Mutex
	caches []evidence.Cache
	// work is the processor time of holders of locks at the first look at them.
	work    map[int]workAt
	frames  []evidence.CacheFrame
	run     evidence.ProbeRun
	partial map[string]int // who has an unfinished download open
}

type workAt struct {
	at time.Time
	ms uint64
}

// holderPause is the time between two looks at who has lock files open, which
// reads the descriptors of every process of the machine.
const (
	holderPause = time.Second
	holderShare = 20 // times what it took: one twentieth of a processor
	holderLimit = 500 * time.Millisecond
)

// keepIdle is how many lock files that nobody holds stay in the evidence of a
// cache: a hub's cache has thousands.
const keepIdle = 4

func (c *cacheWatch) start(ctx context.Context, r *run) {
	found := caches.Find(forCaches(r.s.Processes))
	if len(found) == 0 {
		return
	}
	c.asked, c.ended = make(chan struct{}, 1), make(chan struct{})
	c.work, c.partial = map[int]workAt{}, map[string]int{}
	c.run = evidence.ProbeRun{Name: evidence.ProbeFiles, Status: evidence.OK}
	probe := caches.New(procDir(r.Proc), found, r.s.Processes)
	all := make([]evidence.Cache, len(found))
	copy(all, found)
	tree := pids(r.s.Processes)
	c.asked <- struct{}{}
	go func() {
		defer close(c.ended)
		defer probe.Close()
		var next time.Time
		for range c.asked {
			looks, run := probe.Look(ctx)
			if ctx.Err() != nil {
				return
			}
			merge(all, looks)
			if begin := time.Now(); begin.After(next) {
				c.holders(r.reader, all, looks, tree)
				next = begin.Add(max(holderPause, time.Duration(cmp.Or(c.share, holderShare))*time.Since(begin)))
			}
			c.publish(all, looks, run)
		}
	}()
}

// forCaches are the processes whose environment counts: of llama.cpp, which
// has nothing to do with Python, the same.
func forCaches(procs []evidence.Process) []evidence.Process {
	return slices.DeleteFunc(slices.Clone(procs), func(p evidence.Process) bool {
		return p.Kernel || isShell(&p) || engines.IsHelper(&p)
	})
}

// merge takes a look over into what is known of each cache.
func merge(all []evidence.Cache, looks []caches.Look) {
	for _, l := range looks {
		c := &all[l.Cache]
		if c.Looks == 0 {
			c.First = l.At
		}
		c.Looks++
		c.Last, c.FSType, c.Remote, c.Unread, c.IdleLocks = l.At, l.FSType, l.Remote, l.Unread, l.More
		for _, seen := range l.Locks {
			i := slices.IndexFunc(c.Locks, func(o evidence.LockFile) bool { return o.Path == seen.Path && o.Inode == seen.Inode })
			if i < 0 {
				c.Locks = append(c.Locks, seen)
				continue
			}
			c.Locks[i].Last, c.Locks[i].Modified = seen.Last, seen.Modified
		}
		// One that vanished is no news, unless it counts by being there.
		c.Locks = slices.DeleteFunc(c.Locks, func(o evidence.LockFile) bool {
			return o.Last.Before(l.At) && o.Kind != evidence.LockPresence
		})
	}
}

// holders asks who has the lock files and the unfinished downloads open.
func (c *cacheWatch) holders(reader *process.Reader, all []evidence.Cache, looks []caches.Look, tree []int) {
	now := time.Now()
	var wanted []process.WantedFile
	var locks []*evidence.LockFile
	locked, err := reader.LockedInodes()
	for _, l := range looks {
		for i := range all[l.Cache].Locks {
			f := &all[l.Cache].Locks[i]
			f.Asked, f.Holders, f.Unseen = &now, nil, ""
			if f.Kind == evidence.LockKernel && !locked[f.Inode] && err == nil {
				continue // nobody holds it, whoever has it open
			}
			locks = append(locks, f)
			wanted = append(wanted, process.WantedFile{Path: f.Path, Inode: f.Inode, UID: f.UID})
		}
	}
	for _, l := range looks {
		for _, f := range l.Partial {
			wanted = append(wanted, process.WantedFile{Path: f.Path, Inode: f.Inode, UID: f.UID})
		}
	}
	if len(wanted) == 0 {
		return
	}
	found, unseen := reader.FileHolders(wanted, holderLimit)
	var holding []int
	for i := range locks {
		locks[i].Holders, locks[i].Unseen = found[i], unseen
		for _, h := range found[i] {
			holding = append(holding, h.PID)
		}
	}
	partial := map[string]int{}
	for i, w := range wanted[len(locks):] {
		for _, h := range found[len(locks)+i] {
			if partial[w.Path] == 0 || slices.Contains(tree, h.PID) {
				partial[w.Path] = h.PID
			}
		}
	}
	work := reader.WorkMS(holding)
	for _, f := range locks {
		for i := range f.Holders {
			h := &f.Holders[i]
			ms, ok := work[h.PID]
			if !ok {
				continue
			}
			first, known := c.work[h.PID]
			if !known {
				c.work[h.PID] = workAt{now, ms}
				continue
			}
			did, over := float64(ms)-float64(first.ms), probes.Milliseconds(now.Sub(first.at))
			h.WorkMS, h.OverMS = &did, &over
		}
	}
	c.mu.Lock()
	c.partial = partial
	c.mu.Unlock()
}

// publish makes a look ready for the next frame.
func (c *cacheWatch) publish(all []evidence.Cache, looks []caches.Look, run evidence.ProbeRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caches = c.caches[:0:0]
	for _, one := range all {
		if one.Looks == 0 {
			continue
		}
		one.Locks = worthKeeping(&one)
		c.caches = append(c.caches, one)
	}
	if run.Status == evidence.OK || run.Status == evidence.Partial {
		c.frames = c.frames[:0:0]
		for _, l := range looks {
			if l.Unread == nil {
				c.frames = append(c.frames, l.Frame)
			}
		}
	}
	took := c.run.TookMS + run.TookMS
	if worse(run.Status, c.run.Status) {
		c.run = run
	}
	c.run.TookMS = took
}

// worthKeeping are the lock files that matter, as a copy.
func worthKeeping(c *evidence.Cache) []evidence.LockFile {
	var kept []evidence.LockFile
	idle := 0
	for _, f := range c.Locks {
		if f.Kind == evidence.LockKernel && len(f.Holders) == 0 {
			if idle++; idle > keepIdle {
				c.IdleLocks++
				continue
			}
		}
		f.Holders = slices.Clone(f.Holders)
		kept = append(kept, f)
	}
	return kept
}

// look is the last look that was done, and asks for the next.
func (c *cacheWatch) look(r *run) []evidence.CacheFrame {
	if c.asked == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case c.asked <- struct{}{}:
	default: // one is under way
	}
	if c.caches != nil {
		r.s.Caches = slices.Clone(c.caches)
	}
	frames := slices.Clone(c.frames)
	for i := range frames {
		frames[i].Partial = slices.Clone(frames[i].Partial)
		for k := range frames[i].Partial {
			frames[i].Partial[k].PID = c.partial[frames[i].Partial[k].Path]
		}
	}
	if len(frames) > 0 || c.run.Status != evidence.OK {
		r.replace(c.run)
	}
	return frames
}

// close lets the look under way end by itself.
func (c *cacheWatch) close() {
	if c.asked != nil {
		close(c.asked)
	}
}

// replace takes over a run that adds up by itself.
func (r *run) replace(p evidence.ProbeRun) {
	for i := range r.s.Probes {
		if r.s.Probes[i].Name == p.Name {
			r.s.Probes[i] = p
			return
		}
	}
	r.s.Probes = append(r.s.Probes, p)
}

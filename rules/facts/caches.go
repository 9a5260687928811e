package facts

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// caches adds what grew in caches. A cache in a home directory serves other
// servers, too: growth counts only as far as the tree itself wrote something
// like it, and where that cannot be seen, not at all.
func (m *Movement) caches(s *evidence.Snapshot) {
	first, last := m.cacheFrames(s)
	if first < 0 || first == last {
		return
	}
	wrote := m.wrote(s)
	for j := range s.Frames[last].Caches {
		b := &s.Frames[last].Caches[j]
		a := cacheAt(&s.Frames[first], b.Path)
		if a == nil || !b.At.After(a.At) {
			continue
		}
		if m.partial(s, a, last, j, wrote) {
			continue // the file that grows is counted by itself
		}
		grew := float64(b.Bytes) - float64(a.Bytes)
		if a.Cut || b.Cut || b.Files < a.Files && grew <= 0 || b.Bytes == a.Bytes && b.Files == a.Files || grew < 0 {
			continue
		}
		if grew == 0 {
			grew = float64(b.Files - a.Files)
		}
		if cacheKind(s, b.Path) == evidence.CacheBuild && wrote >= grew/2 {
			m.addOver(b.At.Sub(a.At), Move{Kind: BuildCache, Delta: grew, Value: float64(b.Bytes), At: []any{"frames", last, "caches", j, "bytes"}})
		}
	}
}

// pageCache adds what came into the page cache of the model files, or went.
// Another server may read the same model: alone it leads this one nowhere.
func (m *Movement) pageCache(s *evidence.Snapshot) {
	first, last := -1, -1
	for i := m.First; i <= m.Last; i++ {
		if s.Frames[i].PageCache == nil {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	if first == last {
		return
	}
	a, b := s.Frames[first].PageCache, s.Frames[last].PageCache
	if a.Files != b.Files || a.CachedBytes == b.CachedBytes || !b.At.After(a.At) {
		return
	}
	m.addOver(b.At.Sub(a.At), Move{Kind: PageCache, Delta: float64(b.CachedBytes) - float64(a.CachedBytes), Value: float64(b.CachedBytes),
		At: []any{"frames", last, "page_cache", "cached_bytes"}})
}

// addOver adds a move that was seen over a time of its own: caches are looked at
// beside the frames.
func (m *Movement) addOver(d time.Duration, mv Move) {
	mv.PerS = mv.Delta / d.Seconds()
	m.Moves = append(m.Moves, mv)
}

// partial adds the unfinished downloads that grew, and says whether one did.
func (m *Movement) partial(s *evidence.Snapshot, a *evidence.CacheFrame, last, j int, wrote float64) bool {
	b := &s.Frames[last].Caches[j]
	grows := false
	for k := range b.Partial {
		p := &b.Partial[k]
		from, to, field := uint64(0), p.SizeBytes, "size_bytes"
		for i := range a.Partial {
			if a.Partial[i].Path != p.Path {
				continue
			}
			if from = a.Partial[i].SizeBytes; from == to {
				// Made as long as it will be before the first byte came.
				from, to, field = a.Partial[i].AllocatedBytes, p.AllocatedBytes, "allocated_bytes"
			}
		}
		grew := float64(to) - float64(from)
		if grew <= 0 || !ofProcesses(s, p.PID) && wrote < grew/2 {
			continue
		}
		grows = true
		m.addOver(b.At.Sub(a.At), Move{Kind: Downloaded, PID: p.PID, Delta: grew, Value: float64(to), At: []any{"frames", last, "caches", j, "partial", k, field}})
	}
	return grows
}

// cacheFrames are the first and the last frame of the window with caches.
func (m *Movement) cacheFrames(s *evidence.Snapshot) (first, last int) {
	first, last = -1, -1
	for i := m.First; i <= m.Last; i++ {
		if len(s.Frames[i].Caches) > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

// wrote is how many bytes the tree wrote by write calls, and children that it
// waited for; compilers that live may have written anything.
func (m *Movement) wrote(s *evidence.Snapshot) float64 {
	for j := range s.Frames[m.Last].Processes {
		p := &s.Frames[m.Last].Processes[j]
		if Lives(p.State) && isCompiler(nameOf(s, p.PID)) {
			return 1e18
		}
	}
	return m.Delta(BytesOut)
}

func cacheAt(f *evidence.Frame, path string) *evidence.CacheFrame {
	for i := range f.Caches {
		if f.Caches[i].Path == path {
			return &f.Caches[i]
		}
	}
	return nil
}

func cacheKind(s *evidence.Snapshot, path string) evidence.CacheKind {
	for i := range s.Caches {
		if s.Caches[i].Path == path {
			return s.Caches[i].Kind
		}
	}
	return ""
}

func ofProcesses(s *evidence.Snapshot, pid int) bool { return pid != 0 && nameOf(s, pid) != "" }

func nameOf(s *evidence.Snapshot, pid int) string {
	for i := range s.Processes {
		if s.Processes[i].PID == pid {
			return s.Processes[i].Name
		}
	}
	return ""
}

// NewestPartial is the unfinished download in the last frame that a process of
// the tree has open, with its places in the frame's caches; nil if there is
// none.
func NewestPartial(s *evidence.Snapshot) (cache, file int, p *evidence.PartialFile) {
	if len(s.Frames) == 0 {
		return 0, 0, nil
	}
	last := &s.Frames[len(s.Frames)-1]
	for i := range last.Caches {
		for k := range last.Caches[i].Partial {
			q := &last.Caches[i].Partial[k]
			if ofProcesses(s, q.PID) && (p == nil || q.Modified.After(p.Modified)) {
				cache, file, p = i, k, q
			}
		}
	}
	return cache, file, p
}

package diagnose

import (
	"context"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
)

// pageCacheWatch counts the pages of the model files beside the frames, in the
// child that read their headers: what a frame takes is the last count that was
// done.
type pageCacheWatch struct {
	mu     sync.Mutex
	last   *evidence.PageCacheFrame
	unread *evidence.Unread
}

// Counting walks over every page: the pause after it is at least
// pageCachePause, and pageCacheShare times what it took.
const (
	pageCachePause = 500 * time.Millisecond
	pageCacheShare = 20
)

// follow counts until the context ends, or it turns out that it cannot be.
func (p *pageCacheWatch) follow(ctx context.Context, files *process.Files, pid int, w *evidence.Weights) {
	for ctx.Err() == nil {
		begin := time.Now()
		frame, unread := files.PageCache(ctx, pid, w)
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		p.unread = unread
		if frame != nil {
			p.last = frame
		}
		p.mu.Unlock()
		if frame == nil {
			return
		}
		pause(ctx, max(pageCachePause, pageCacheShare*time.Since(begin)))
	}
}

// look hands out a count once, and writes down why there is none.
func (p *pageCacheWatch) look(s *evidence.Snapshot) *evidence.PageCacheFrame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Weights != nil && p.unread != nil && s.Weights.PageCacheUnread == nil {
		with := *s.Weights
		with.PageCacheUnread = p.unread
		s.Weights = &with
	}
	frame := p.last
	p.last = nil
	return frame
}

package diagnose

import (
	"context"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

// headersWatch reads the headers of the model files in the background, in a
// child of its own, which then counts their pages in the page cache. Reading from a store that does not answer would leave that
// child behind, so it begins once the store is seen to give bytes, or nobody is
// seen to wait for it.
type headersWatch struct {
	cancel context.CancelFunc
	done   chan struct{}
	got    *evidence.Weights
	taken  bool
	pages  pageCacheWatch
}

// headersPatience is how long the end of a run waits for them: on a local disk
// they take milliseconds.
const headersPatience = 300 * time.Millisecond

// look begins to read when it may, and takes over what was read.
func (h *headersWatch) look(ctx context.Context, r *run, j *rules.Judgement) {
	w := r.s.Weights
	if h.done == nil {
		if w == nil || len(w.Files) == 0 || storageWaited(r.s) && !j.Case.WeightsDone.Moving() {
			return
		}
		h.start(ctx, r, w)
	}
	select {
	case <-h.done:
		h.take(r)
	default:
	}
}

func (h *headersWatch) start(ctx context.Context, r *run, w *evidence.Weights) {
	h.done = make(chan struct{})
	ctx, h.cancel = context.WithCancel(ctx)
	files, pid := r.reader.OtherFiles(), r.s.Target.PID
	if r.weightsPID != 0 {
		pid = r.weightsPID
	}
	go func() {
		defer files.Close()
		// An error stands in Unread.
		got, err := files.Headers(ctx, pid, w)
		h.got = got
		close(h.done)
		if err == nil {
			h.pages.follow(ctx, files, pid, got)
		}
	}()
}

// storageWaited tells whether the last look at threads found one that waits for
// a file system.
func storageWaited(s *evidence.Snapshot) bool {
	for n := len(s.Frames) - 1; n >= 0; n-- {
		if s.Frames[n].StorageLooked {
			return len(s.Frames[n].Storage) > 0
		}
	}
	return false
}

func (h *headersWatch) take(r *run) {
	if !h.taken && h.got != nil {
		h.taken = true
		r.s.Weights = h.got
	}
}

// end takes what there is and gives up on the rest.
func (h *headersWatch) end(r *run) {
	if h.done == nil || h.taken {
		return
	}
	select {
	case <-h.done:
		h.take(r)
	case <-time.After(headersPatience):
		with := *r.s.Weights
		with.Unread = &evidence.Unread{What: "headers of the model files", Status: evidence.Timeout, Why: "not read when the run ended"}
		r.s.Weights = &with
	}
}

func (h *headersWatch) close() {
	if h.cancel != nil {
		h.cancel()
	}
}

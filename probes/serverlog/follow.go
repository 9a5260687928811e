package serverlog

import (
	"io"
	"sync"
	"time"

	"github.com/hpcloud/tail"
	"github.com/hpcloud/tail/watch"
)

// pollOften is how often the library looks at the file. Its own 250 ms is
// longer than the time between two looks of a run.
const pollOften = 20 * time.Millisecond

func init() { pollEvery(pollOften) }

func pollEvery(d time.Duration) {
	if d <= 0 {
		d = pollOften
	}
	watch.POLL_DURATION = d
}

// catchUp is how long a frame waits for the follower to come to the end of
// what is in the file.
const catchUp = 150 * time.Millisecond

// follower follows a file that grows. The library runs in a goroutine; it is
// used with polling, as its inotify tracker ends the process when the system
// has no instance left, and is always drained, as it cannot be stopped
// otherwise.
type follower struct {
	t       *tail.Tail
	drained chan struct{}

	mu      sync.Mutex
	moved   chan struct{} // closed at the next line
	offset  int64         // behind the last line that came
	counts  growth
	novelty *novelty
}

// growth is what came since the last frame, in lines.
type growth struct {
	lines, content, activity int64
}

// follow starts at an offset that begins a line. path is opened again.
func follow(path string, offset int64, n *novelty) (*follower, error) {
	t, err := tail.TailFile(path, tail.Config{
		Location: &tail.SeekInfo{Offset: offset, Whence: io.SeekStart},
		Follow:   true, ReOpen: false, MustExist: true, Poll: true,
		Logger: tail.DiscardingLogger,
	})
	if err != nil {
		return nil, err
	}
	f := &follower{t: t, drained: make(chan struct{}), moved: make(chan struct{}), offset: offset, novelty: n}
	go f.drain()
	return f, nil
}

// drain takes lines until the library closes its channel.
func (f *follower) drain() {
	defer close(f.drained)
	for line := range f.t.Lines {
		f.take(line.Text)
	}
}

func (f *follower) take(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offset += int64(len(line)) + 1
	isNew, busy := false, false
	pieces([]byte(line), func(p []byte) {
		n, b := f.novelty.isNew(p)
		isNew, busy = isNew || n, busy || b
	})
	f.counts.lines++
	if isNew {
		f.counts.content++
	}
	if busy {
		f.counts.activity++
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// since waits until the follower has come to an offset, for catchUp at most,
// and returns what came since the last call. bar is a piece without newline.
func (f *follower) since(offset int64, bar []byte) growth {
	limit := time.NewTimer(catchUp)
	defer limit.Stop()
	for {
		f.mu.Lock()
		behind, moved := f.offset < offset, f.moved
		if !behind {
			break
		}
		f.mu.Unlock()
		select {
		case <-moved:
		case <-f.drained:
			offset = 0
		case <-limit.C:
			offset = 0
		}
	}
	defer f.mu.Unlock()
	if isNew, _ := f.novelty.isNew(bar); isNew {
		f.counts.content++
	}
	g := f.counts
	f.counts = growth{}
	return g
}

// stop ends the following and waits until nothing of it is left.
func (f *follower) stop() {
	_ = f.t.Stop()
	<-f.drained
}

package diagnose

import (
	"context"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/kernel"
)

// limitsWatch looks at what the machine grants the tree: control groups in
// every look, the kernel's log and the file systems once, in the background.
type limitsWatch struct {
	reader *kernel.Reader
	done   chan struct{}
	taken  bool
	log    *evidence.KernelLog
	logRun evidence.ProbeRun
	room   []evidence.FileSystem
	unread []evidence.Unread
	clocks []evidence.CPUClock
	// killed is the machine's count of kills for memory when its log was last
	// read; again how often it was read for a new one.
	killed *uint64
	again  int
}

// mostReadings bounds how often the kernel's log is read again.
const mostReadings = 3

func (l *limitsWatch) start(ctx context.Context, r *run) {
	l.done = make(chan struct{})
	reader, err := kernel.NewReader(kernel.Options{Proc: r.Proc})
	if err != nil {
		l.logRun = evidence.ProbeRun{Name: evidence.ProbeKernel, Status: evidence.Failed, Detail: err.Error()}
		close(l.done)
		return
	}
	l.reader = reader
	procs := append([]evidence.Process(nil), r.s.Processes...)
	go func() {
		defer close(l.done)
		l.log, l.logRun = reader.Log(ctx, &procs[0])
		l.room, l.unread = reader.FileSystems(ctx, procs)
		clocks, unread := reader.CPUClocks()
		if l.clocks = clocks; unread != nil {
			l.unread = append(l.unread, *unread)
		}
	}()
}

// look is what moves of the limits; it takes over what came in the background.
func (l *limitsWatch) look(ctx context.Context, r *run) *evidence.KernelFrame {
	if l.done == nil {
		return nil
	}
	if r.s.Kernel == nil {
		r.s.Kernel = &evidence.Kernel{}
	}
	select {
	case <-l.done:
		l.take(r)
	default:
	}
	if l.reader == nil {
		return nil
	}
	frame, groups, unread, run := l.reader.Frame(ctx, r.s.Processes)
	r.note(run)
	if frame != nil {
		r.s.Kernel.Cgroups = groups
		r.s.Kernel.Unread = append(unread, l.unread...)
		l.readAgain(ctx, r, frame)
	}
	if l.taken {
		r.s.Kernel.Log = kernel.OfTree(l.log, r.s.Processes, r.s.Kernel.Cgroups)
	}
	return frame
}

// readAgain reads the kernel's log once more when something was killed for
// memory since: it may have been a part of this server.
func (l *limitsWatch) readAgain(ctx context.Context, r *run, f *evidence.KernelFrame) {
	if f.OOMKills == nil || !l.taken {
		return
	}
	before := l.killed
	l.killed = f.OOMKills
	if before == nil || *f.OOMKills <= *before || l.log == nil || l.again >= mostReadings {
		return
	}
	l.again++
	if log, run := l.reader.Log(ctx, &r.s.Processes[0]); log != nil {
		l.log = log
	} else {
		r.note(run)
	}
}

func (l *limitsWatch) take(r *run) {
	if l.taken {
		return
	}
	l.taken = true
	r.s.Kernel.FileSystems, r.s.Kernel.CPUClocks = l.room, l.clocks
	r.note(l.logRun)
}

func (l *limitsWatch) close() {
	if l.reader != nil {
		l.reader.Close()
	}
}

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
}

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
	}
	return frame
}

func (l *limitsWatch) take(r *run) {
	if l.taken {
		return
	}
	l.taken = true
	r.s.Kernel.Log, r.s.Kernel.FileSystems = l.log, l.room
	r.note(l.logRun)
}

func (l *limitsWatch) close() {
	if l.reader != nil {
		l.reader.Close()
	}
}

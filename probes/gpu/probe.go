package gpu

import (
	"context"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// DefaultLimit is how long one question to the driver may take: opening the
// library, or one GPU. A whole look takes at most twice that.
const DefaultLimit = 5 * time.Second

// Probe asks for the GPUs through a child process. Its methods may be called
// from several goroutines.
type Probe struct {
	// Limit may be changed before the first call of Devices.
	Limit time.Duration

	child   *probes.Child
	procDir string

	mu    sync.Mutex
	count int          // GPUs that were answered for in Devices
	tree  map[int]bool // PIDs that count as the target's
	run   evidence.ProbeRun
	stuck *evidence.StuckChild
	ended bool // the child hangs, crashed, or has nothing to ask
}

// Start starts the child and asks it nothing yet. procDir is the /proc in
// which driver/nvidia/version is looked for; it is not where NVML looks.
func Start(procDir string) (*Probe, error) {
	child, err := probes.StartChild(ChildName)
	if err != nil {
		return nil, err
	}
	return &Probe{Limit: DefaultLimit, child: child, procDir: procDir}, nil
}

// Devices is the first look: what the GPUs are and how they stand. treePIDs
// are the PIDs of the target's tree, in our PID namespace and in theirs, as
// drivers differ in which they name. GPUs that answered before one that hangs
// are returned. The GPU is nil when there is no driver to ask.
func (p *Probe) Devices(ctx context.Context, treePIDs []int) (*evidence.GPU, []evidence.GPUFrame, evidence.ProbeRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := time.Now()
	p.tree = make(map[int]bool, len(treePIDs))
	for _, pid := range treePIDs {
		p.tree[pid] = true
	}
	gpu, frames := p.devices(ctx)
	p.run.Name = evidence.ProbeGPU
	p.run.TookMS = probes.Milliseconds(time.Since(start))
	return gpu, frames, p.run
}

func (p *Probe) devices(ctx context.Context) (*evidence.GPU, []evidence.GPUFrame) {
	ctx, cancel := context.WithTimeout(ctx, 2*p.Limit)
	defer cancel()
	var o opened
	if err := p.ask(ctx, question{Open: true}, &o); err != nil {
		p.fail(ctx, err, 0, 0)
		if p.stuck == nil {
			return nil, nil
		}
		return &evidence.GPU{Library: "NVML", Child: p.stuck}, nil
	}
	if o.Status != evidence.OK {
		p.refused(o)
		return nil, nil
	}
	gpu := &evidence.GPU{Driver: o.Driver, Library: "NVML"}
	var frames []evidence.GPUFrame
	for i := range o.Count {
		var s seen
		if err := p.ask(ctx, question{GPU: i, Static: true}, &s); err != nil {
			p.fail(ctx, err, i, o.Count)
			gpu.Child = p.stuck
			return gpu, frames
		}
		p.mark(s.Frame.Processes)
		gpu.Devices = append(gpu.Devices, s.Device)
		frames = append(frames, s.Frame)
	}
	p.count = o.Count
	p.run = howItWent(gpu, frames)
	return gpu, frames
}

// Look is a later look: only what moves. It returns the GPUs that answered;
// why there are fewer than before is in Status. A ctx that ends before Limit
// ends the child with it: there is no later look then.
func (p *Probe) Look(ctx context.Context) []evidence.GPUFrame {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*p.Limit)
	defer cancel()
	var frames []evidence.GPUFrame
	for i := range p.count {
		var s seen
		if err := p.ask(ctx, question{GPU: i}, &s); err != nil {
			p.fail(ctx, err, i, p.count)
			break
		}
		p.mark(s.Frame.Processes)
		frames = append(frames, s.Frame)
	}
	return frames
}

// Status is how the probe stands now: the run that Devices returned, or what
// went wrong in a later look, and the child that hangs, if one does.
func (p *Probe) Status() (evidence.ProbeRun, *evidence.StuckChild) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run, p.stuck
}

// Close lets the child end. It does not wait for it.
func (p *Probe) Close() { p.child.Close() }

// ask puts one question with the limit of one question.
func (p *Probe) ask(ctx context.Context, q question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, p.Limit)
	defer cancel()
	return p.child.Call(ctx, q, answer)
}

// mark says which of the processes are the target's.
func (p *Probe) mark(list []evidence.GPUProcess) {
	for i := range list {
		list[i].InTree = p.tree[list[i].PID]
	}
}

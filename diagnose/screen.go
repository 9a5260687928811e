package diagnose

import (
	"context"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// How a screen looks: at counters every couple of seconds, more seldom where a
// look is dear; at who is there, and who listens, less often. It judges what it
// saw over the last seconds.
const (
	screenStep     = 2 * time.Second
	screenLongest  = 30 * time.Second
	describeEvery  = 30 * time.Second
	socketsEvery   = 10 * time.Second
	screenKeeps    = 20 * time.Second
	screenKeepsMin = 4
)

// screenShare is the share of a processor that the looks may use: a variable
// for the tests, as several of them share a process. screenAdvance is what the
// looks may use at once.
var screenShare = 0.002

const screenAdvance = 200 * time.Millisecond

// screen looks at a server cheaply, for as long as it lives: no lock words, no
// threads, no question to it.
type screen struct {
	r                  *run
	described, sockets time.Time
	// opens: the log says it is ready, and no listener was seen yet.
	opens bool
	cost  cost
}

func newScreen(ctx context.Context, o Options) (*screen, error) {
	reader, err := process.NewReader(o.Proc)
	if err != nil {
		return nil, err
	}
	o.Passive = true
	r := newRun(o, reader)
	r.log.poll = screenStep / 2
	r.caches.share = 1000
	s := &screen{r: r, cost: newCost()}
	if r.find(ctx) {
		r.startSlowProbes(ctx)
		s.described = time.Now()
	}
	return s, nil
}

func (s *screen) close() {
	s.r.close()
	s.r.reader.Close()
}

// look takes one look and judges the last seconds.
func (s *screen) look(ctx context.Context) *rules.Judgement {
	r := s.r
	if !r.alive() {
		return r.judge()
	}
	born := len(r.s.Processes)
	now := time.Now()
	if s.opens || now.Sub(s.sockets) >= socketsEvery {
		s.sockets = now
		r.s.Sockets, _ = r.sockets()
	}
	r.frame(ctx, frameOptions{})
	// A new process gets its name and title a little after its birth.
	if age := now.Sub(s.described); age >= describeEvery || age >= screenStep && len(r.s.Processes) > born {
		s.described = now
		s.describe(ctx)
	}
	s.forget()
	r.s.Taken = time.Now()
	j := rules.Judge(r.s)
	s.opens = j.Case.Phases.Ready != nil && !j.Case.Door.Listens
	return j
}

// describe reads again who is there: titles change, and a loader opens one file
// after another.
func (s *screen) describe(ctx context.Context) {
	r := s.r
	procs, _ := r.reader.Tree(ctx, r.s.Target.PID, r.tree)
	if len(procs) == 0 {
		return
	}
	roles := facts.EngineOf(r.s.Processes).Roles
	for i := range r.s.Processes {
		old := &r.s.Processes[i]
		at := slices.IndexFunc(procs, func(p evidence.Process) bool { return p.PID == old.PID && p.StartTicks == old.StartTicks })
		if at >= 0 {
			process.KeepFiles(&procs[at], old.Files)
		} else if roles[old.PID].Head {
			procs = append(procs, *old) // that it is gone is what counts
		}
	}
	r.s.Processes = procs
	if r.s.Weights == nil {
		r.findWeights(ctx)
	}
}

// forget drops looks that are too old, and processes that ended and played no
// part: a build has thousands of them.
func (s *screen) forget() {
	snap := s.r.s
	last := snap.Frames[len(snap.Frames)-1].SinceMS
	keep := max(s.r.Window, screenKeeps)
	old := 0
	for old < len(snap.Frames)-screenKeepsMin && last-snap.Frames[old+1].SinceMS > float64(keep.Milliseconds()) {
		old++
	}
	for i := range snap.Frames[:old] {
		for j := range snap.Frames[i].Processes {
			f := &snap.Frames[i].Processes[j]
			if at := slices.IndexFunc(snap.Processes, func(p evidence.Process) bool { return p.PID == f.PID }); at >= 0 {
				process.KeepFiles(&snap.Processes[at], asOpen(f.Files))
			}
		}
	}
	snap.Frames = slices.Delete(snap.Frames, 0, old)
	first := snap.Frames[0].SinceMS
	for i := range snap.Frames {
		snap.Frames[i].SinceMS -= first
	}
	s.r.firstLook = s.r.firstLook.Add(time.Duration(first * float64(time.Millisecond)))
	frame := &snap.Frames[len(snap.Frames)-1]
	roles := facts.EngineOf(snap.Processes).Roles
	snap.Processes = slices.DeleteFunc(snap.Processes, func(p evidence.Process) bool {
		at := facts.ProcessAt(frame, p.PID)
		return p.PID != snap.Target.PID && !roles[p.PID].Head && at >= 0 && frame.Processes[at].State == ""
	})
}

func asOpen(files []evidence.FileFrame) []evidence.OpenFile {
	var open []evidence.OpenFile
	for _, f := range files {
		open = append(open, evidence.OpenFile{Path: f.Path, FD: f.FD, PosBytes: f.PosBytes, ResidentBytes: f.ResidentBytes, Mapped: f.ResidentBytes != nil})
	}
	return open
}

// rest pauses until the next look.
func (s *screen) rest(ctx context.Context, until time.Time) {
	pause(ctx, min(s.cost.rest(), max(0, time.Until(until))+10*time.Millisecond))
}

// moves tells whether the server comes further, or is where it should be.
func moves(j *rules.Judgement) bool {
	return j.Verdict == rule.Loading || j.Verdict == rule.Ready || facts.Furthest(&j.Case.Moves) != nil
}

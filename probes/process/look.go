package process

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// LookOptions say what to look at.
type LookOptions struct {
	// Threads: every thread too. Some 40 microseconds a thread.
	Threads bool
	// Stacks: when lock words are read, Python's stacks and `with` blocks too,
	// and who holds the other ends of pipes also where nobody can be stuck at
	// them. Some 40 microseconds a Python thread, and a look at the descriptors
	// of all processes.
	Stacks bool
	// WeightExt as in TreeOptions.
	WeightExt []string
}

// How long one process may take in a look, without and with waiting for its
// memory lock.
const (
	lookLimit  = 5 * time.Second
	filesLimit = time.Second
)

// Reading how much of each mapped file is mapped in walks all page tables of
// the process (readResident), so only small processes are asked: at discovery,
// and in every frame.
const (
	maxResidentAtDiscovery = 8 << 30
	maxResidentInFrame     = 2 << 30
)

// Look takes one pass over everything that moves of these processes; the
// frames are in their order. A process that has ended, or whose PID belongs to
// another one now, has an empty State and no counters. One that did not answer
// in time has no frame: its counters are not known. The run says what could
// not be read; ctx ends the pass early.
func (r *Reader) Look(ctx context.Context, procs []evidence.Process, o LookOptions) ([]evidence.ProcessFrame, evidence.ProbeRun) {
	start := time.Now()
	seen := each(ctx, len(procs), lookLimit, func(i int) seenProcess { return r.lookAt(&procs[i], o, nil) })
	return r.framesOf(ctx, procs, seen, o, start)
}

// framesOf makes the frames, and says how it went. What may wait for a
// process's memory lock comes here, after everything else.
func (r *Reader) framesOf(ctx context.Context, procs []evidence.Process, seen []answer[seenProcess], o LookOptions, start time.Time) ([]evidence.ProcessFrame, evidence.ProbeRun) {
	files := each(ctx, len(procs), filesLimit, func(i int) seenFiles {
		if s := seen[i].Value; s.frame.State == "" || s.frame.State == "Z" {
			return seenFiles{}
		}
		leave, ok := r.enter("files", procs[i].PID)
		if !ok {
			return seenFiles{why: stillInside}
		}
		defer leave()
		return seenFiles{frames: r.fileFrames(&procs[i], seen[i].Value, o)}
	})
	t := r.newTally(procs)
	frames := make([]evidence.ProcessFrame, 0, len(procs))
	for i, s := range seen {
		pid := procs[i].PID
		if !s.Done {
			t.lateFor(pid, s.Why)
			continue
		}
		f := s.Value.frame
		f.PID, f.Files = pid, files[i].Value.frames
		frames = append(frames, f)
		if why := files[i].Why + files[i].Value.why; why != "" {
			t.lateFor(pid, "maps and descriptors: "+why)
		}
		for _, file := range s.Value.denied {
			t.deny(pid, file)
		}
	}
	name := evidence.ProbeProcess
	if o.Threads {
		name = evidence.ProbeThreads
	}
	run := t.run(name)
	run.TookMS = probes.Milliseconds(time.Since(start))
	return frames, run
}

// seenFiles is what fileFrames saw, or why not.
type seenFiles struct {
	frames []evidence.FileFrame
	why    string
}

// seenProcess is what lookAt saw.
type seenProcess struct {
	frame    evidence.ProcessFrame
	sleepers sleepers
	via      int
	denied   []string
	// maps are its mappings, if they were read for its lock words.
	maps []mapping
}

// same finds who speaks for a process; false when it has ended or the PID is
// another process's now.
func (r *Reader) same(p *evidence.Process, buf []byte) (leader, speaker stat, via int, ok bool) {
	leader, err := readStat(r.base(p.PID, 0), buf)
	if err != nil || leader.Start != p.StartTicks {
		return leader, speaker, 0, false
	}
	via, speaker, _ = r.alive(p.PID, leader)
	return leader, speaker, via, true
}

// lookAt reads the files that no memory lock can delay.
func (r *Reader) lookAt(p *evidence.Process, o LookOptions, h *held) seenProcess {
	buf := make([]byte, statusFileSize)
	leader, speaker, via, ok := r.same(p, buf)
	if !ok {
		return seenProcess{}
	}
	s := seenProcess{via: via, frame: evidence.ProcessFrame{
		State: string(speaker.State), ThreadCount: leader.Threads,
		// The leader's times and faults are those of the whole group.
		UserMS: milliseconds(leader.User), SystemMS: milliseconds(leader.System),
		ChildUserMS: milliseconds(leader.ChildUser), ChildSystemMS: milliseconds(leader.ChildSystem),
		MinorFaults: leader.MinorFaults, MajorFaults: leader.MajorFaults,
	}}
	f := &s.frame
	if f.State == "Z" { // nothing of it moves, and its files belong to root
		f.WaitStatus = r.waitStatus(p.PID, leader)
		return s
	}
	if st, err := readStatus(r.base(p.PID, via), buf); err == nil {
		f.RSSAnonBytes, f.RSSFileBytes, f.RSSShmemBytes, f.SwapBytes = st.RSSAnon, st.RSSFile, st.RSSShmem, st.Swap
	}
	// The process's own io file sums up its threads, also those that ended.
	b, err := readAt(unix.AT_FDCWD, r.path(p.PID, "io"), buf)
	if err == nil {
		io := parseIO(b)
		f.ReadCharBytes, f.WriteCharBytes, f.ReadBytes, f.WriteBytes, f.WriteCalls = io.ReadChar, io.WriteChar, io.Read, io.Write, io.WriteCalls
	} else if isDenied(err) {
		s.denied = append(s.denied, "io")
	}
	if o.Threads {
		if f.Threads, s.sleepers = r.threads(p.PID, via, h); s.sleepers.denied {
			s.denied = append(s.denied, "syscall")
		}
	}
	return s
}

// fileFrames says how far the weight files have come that the process has
// mapped or open now: others than at discovery, as loaders take one shard
// after another.
func (r *Reader) fileFrames(p *evidence.Process, s seenProcess, o LookOptions) []evidence.FileFrame {
	proc, err := r.proc(p.PID, s.via)
	if err != nil {
		return nil
	}
	base := r.base(p.PID, s.via)
	found := newWeightFiles(o.WeightExt)
	maps := s.maps
	if maps == nil {
		maps, _ = readMaps(base + "/maps") // denied: said at discovery
	}
	for i := range maps {
		found.mapped(&maps[i], nil)
	}
	_ = found.addDescriptors(base, proc)
	files := found.list()
	if found.anyMapped() && sum(s.frame.RSSAnonBytes, s.frame.RSSFileBytes, s.frame.RSSShmemBytes) < maxResidentInFrame {
		if rss, err := readResident(base+"/smaps", found.has); err == nil {
			setResident(files, rss)
		}
	}
	var frames []evidence.FileFrame
	for _, f := range files {
		if r.isSmall(f.Path) {
			continue
		}
		frames = append(frames, evidence.FileFrame{Path: f.Path, FD: f.FD, PosBytes: f.PosBytes, ResidentBytes: f.ResidentBytes})
	}
	return frames
}

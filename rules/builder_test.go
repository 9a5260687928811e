package rules_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// builtCase is a case whose snapshot is built by code, from facts of the
// reference and of real runs.
type builtCase struct {
	name  string
	want  want
	build func() *evidence.Snapshot
}

// builtCases are all of them, by the verdict they are about.
func builtCases() []builtCase {
	return slices.Concat(
		incidentCases(),
		deadlockCases(),
		brokenCases(),
		waitCases(),
		rankCases(),
		weightCases(),
		loadingCases(),
		stalledCases(),
		unresponsiveCases(),
		gpuCases(),
		cacheCases(),
		frozenCases(),
		starvedCases(),
		killedCases(),
		fullCases(),
		readyCases(),
		distortCases(),
		doorCases(),
		acceptCases(),
		counterCases(),
		goneCases(),
		unknownCases(),
	)
}

// then is when all built snapshots were taken.
var then = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// snap builds a snapshot.
type snap struct{ s *evidence.Snapshot }

// aServer begins with a living root process of the given command line.
func aServer(pid int, argv ...string) *snap {
	b := &snap{&evidence.Snapshot{
		Schema: evidence.SnapshotSchema, Tool: evidence.Tool{Version: "built"}, Taken: then, TookMS: 2300,
		Asked:  evidence.Asked{PID: pid, WindowMS: 10000, TolerancePct: 10},
		Host:   evidence.Host{Kernel: "6.8.0", Arch: "x86_64", CPUs: 64},
		Target: evidence.Target{PID: pid, State: evidence.TargetAlive},
		Sockets: &evidence.Sockets{
			NetNS: "net:[4026531840]", SameNetNS: ptr(true), OwnersKnown: true},
	}}
	for _, p := range []evidence.ProbeName{evidence.ProbeProcess, evidence.ProbeThreads, evidence.ProbeWaits, evidence.ProbeSockets} {
		b.s.Probes = append(b.s.Probes, evidence.ProbeRun{Name: p, Status: evidence.OK, TookMS: 10})
	}
	b.s.Probes = append(b.s.Probes, evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.Unsupported, Detail: "no NVIDIA driver: libnvidia-ml.so.1 not found"})
	return b.process(pid, 1, argv...)
}

func ptr[T any](v T) *T { return &v }

// process adds a process.
func (b *snap) process(pid, parent int, argv ...string) *snap {
	name := filepath.Base(argv[0])
	if len(name) > 15 {
		name = name[:15]
	}
	b.s.Processes = append(b.s.Processes, evidence.Process{PID: pid, PPID: parent, NSPID: []int{pid}, StartTicks: uint64(pid),
		Started: then.Add(-10 * time.Minute), Name: name, Argv: argv, State: "S", NetNS: "net:[4026531840]"})
	return b
}

// last is the process added last.
func (b *snap) last() *evidence.Process { return &b.s.Processes[len(b.s.Processes)-1] }

// moves is how one process moves per second.
type moves struct {
	state                  string
	user, system           uint64 // ms
	faults                 uint64
	anon, file, read, disk uint64 // bytes
	threads                []evidence.ThreadFrame
	position               uint64 // bytes a second of the weight file
	from                   uint64 // where the weight file stood at the first look
	path                   string
	gone                   bool
	waitStatus             *int
}

// frames adds looks at these seconds, in which the processes moved as said, by
// PID. Processes that are not named sleep.
func (b *snap) frames(by map[int]moves, seconds ...float64) *snap {
	for n, at := range seconds {
		f := evidence.Frame{At: then.Add(time.Duration((at - seconds[len(seconds)-1]) * float64(time.Second))), SinceMS: at * 1000, TookMS: 10}
		for i := range b.s.Processes {
			p := &b.s.Processes[i]
			m := by[p.PID]
			f.Processes = append(f.Processes, m.frame(p.PID, at, n == 0 || n == len(seconds)-1))
		}
		b.s.Frames = append(b.s.Frames, f)
	}
	return b
}

// frame is one process at one moment.
func (m moves) frame(pid int, at float64, looked bool) evidence.ProcessFrame {
	grown := func(from, perSecond uint64) uint64 { return from + uint64(float64(perSecond)*at) }
	f := evidence.ProcessFrame{PID: pid, State: m.state, ThreadCount: max(1, len(m.threads)), WaitStatus: m.waitStatus,
		UserMS: grown(5000, m.user), SystemMS: grown(900, m.system), MinorFaults: grown(70000, m.faults),
		RSSAnonBytes: ptr(grown(1<<30, m.anon)), RSSFileBytes: ptr(grown(300<<20, m.file)), RSSShmemBytes: ptr(uint64(0)),
		ReadCharBytes: ptr(grown(40<<20, m.read)), WriteCharBytes: ptr(uint64(1 << 20)), ReadBytes: ptr(grown(20<<20, m.disk)), WriteBytes: ptr(uint64(0))}
	if f.State == "" {
		f.State = "S"
	}
	if m.gone {
		return evidence.ProcessFrame{PID: pid}
	}
	if m.path != "" {
		f.Files = []evidence.FileFrame{{Path: m.path, FD: 9, PosBytes: ptr(grown(m.from, m.position))}}
	}
	if looked {
		for _, t := range m.threads {
			ran := uint64(0)
			if t.State == "R" {
				ran = uint64(at * 1e9)
			}
			t.RunNS, t.DelayNS, t.Slices = ptr(uint64(1e6)+ran), ptr(uint64(1000)), ptr(10+ran/1e6)
			f.Threads = append(f.Threads, t)
		}
	}
	return f
}

// sleepers are threads asleep in futex waits, as in every idle pool.
func sleepers(first, n int, name string) []evidence.ThreadFrame {
	var all []evidence.ThreadFrame
	for i := range n {
		all = append(all, evidence.ThreadFrame{TID: first + i, Name: name, State: "S", Wchan: "futex_do_wait",
			Syscall: fmt.Sprintf("202 0x7f00%06x 0x189 0x0 0x0 0x0 0xffffffff 0x7f10%06x 0x7f2000", i*64, i*64)})
	}
	return all
}

// in adds one thread in another call.
func in(threads []evidence.ThreadFrame, tid int, name, state, syscall, wchan string) []evidence.ThreadFrame {
	return append(threads, evidence.ThreadFrame{TID: tid, Name: name, State: state, Syscall: syscall, Wchan: wchan})
}

// weights gives the process added last a weight file of that size.
func (b *snap) weights(path string, size uint64) *snap {
	p := b.last()
	p.Files = append(p.Files, evidence.OpenFile{Path: path, SizeBytes: ptr(size), FD: 9, PosBytes: ptr(uint64(0))})
	if b.s.Weights == nil {
		b.s.Weights = &evidence.Weights{Path: path, FoundBy: fmt.Sprintf("held by process %d", p.PID), Format: "safetensors",
			Files: []evidence.WeightFile{{Path: path, SizeBytes: size}}, TotalBytes: size, FSType: "ext4"}
	}
	return b
}

// log adds a log of testdata/logs, as it was when it had so many lines.
func (b *snap) log(name string, lines int64, silent float64) *snap {
	var l evidence.Log
	raw, err := os.ReadFile("../testdata/logs/" + name + ".log.json")
	if err == nil {
		err = json.Unmarshal(raw, &l)
	}
	if err != nil {
		panic(err)
	}
	l.Path, l.Source = "/var/log/"+name+".log", fmt.Sprintf("fd 1 of %d", b.s.Target.PID)
	l.SilentS, l.Lines = silent, lines
	l.Modified = then.Add(-time.Duration(silent * float64(time.Second)))
	var kept []evidence.Mark
	for _, m := range l.Marks {
		if m.First.Line > lines {
			continue
		}
		if m.Last != nil && m.Last.Line > lines {
			m.Last, m.Count = nil, 1
		}
		kept = append(kept, m)
	}
	l.Marks = kept
	if l.LaunchLine > lines {
		l.LaunchLine, l.Launches = 0, 0
	}
	var tail []evidence.Line
	for _, t := range l.Tail {
		if t.Number <= lines {
			tail = append(tail, t)
		}
	}
	l.Tail, l.Last = tail, nil
	b.s.Logs = append(b.s.Logs, l)
	b.s.Probes = append(b.s.Probes, evidence.ProbeRun{Name: evidence.ProbeLog, Status: evidence.OK, TookMS: 3})
	return b
}

// mark is the mark of a signature in the log added last.
func (b *snap) mark(signature string) *evidence.Mark {
	l := &b.s.Logs[len(b.s.Logs)-1]
	for i := range l.Marks {
		if l.Marks[i].Signature == signature {
			return &l.Marks[i]
		}
	}
	panic("no mark " + signature)
}

// listens adds a listener of a process.
func (b *snap) listens(pid, port, queue int) *snap {
	b.s.Sockets.Listeners = append(b.s.Sockets.Listeners, evidence.Listener{Network: "tcp", Address: fmt.Sprintf("0.0.0.0:%d", port), Port: port,
		Inode: uint64(7000 + port), Owner: evidence.OwnerDescriptor, PID: pid, AcceptQueue: queue})
	for i := range b.s.Frames {
		b.s.Frames[i].Sockets = &evidence.SocketFrame{AcceptQueues: map[string]int{fmt.Sprint(7000 + port): queue}}
	}
	return b
}

// checked adds the answers to the check.
func (b *snap) checked(v evidence.CheckVerdict, says string, answers ...evidence.Exchange) *snap {
	b.s.Check = &evidence.Check{URL: "http://127.0.0.1:8000", ModelID: "model", Verdict: v, Says: says, HealthStatus: 200, Exchanges: answers, TookMS: 500, Requests: 2 + len(answers)}
	return b
}

// answered is one exchange that came to its end.
func answered(content string) evidence.Exchange {
	return evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, HTTPStatus: 200, Content: content, FinishReason: "stop",
		TTFTMS: 120, E2ELMS: 400, CompletionTokens: 8, Chunks: 8, TokenCountSource: "usage", DoneSeen: true}
}

// probe replaces how a probe went.
func (b *snap) probe(p evidence.ProbeRun) *snap {
	for i := range b.s.Probes {
		if b.s.Probes[i].Name == p.Name {
			b.s.Probes[i] = p
			return b
		}
	}
	b.s.Probes = append(b.s.Probes, p)
	return b
}

func (b *snap) done() *evidence.Snapshot { return b.s }

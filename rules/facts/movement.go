package facts

import (
	"sort"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Kind is what a move is measured in.
type Kind string

// The kinds of movement. Which of them lead towards an end is for the rules:
// CPU time and thread runs alone do not.
const (
	CPUUser     Kind = "user CPU"               // milliseconds
	CPUSystem   Kind = "system CPU"             // milliseconds
	CPUChildren Kind = "CPU of reaped children" // milliseconds
	Faults      Kind = "page faults"            // count
	MemoryAnon  Kind = "private memory"         // bytes, may shrink
	MemoryFile  Kind = "mapped file memory"     // bytes, may shrink
	MemoryShmem Kind = "shared memory"          // bytes, may shrink
	BytesRead   Kind = "bytes read"             // by read calls
	DiskRead    Kind = "bytes from storage"
	BytesOut    Kind = "bytes written"
	ThreadRuns  Kind = "thread runs"                   // schedstat slices of all threads
	GPUMemory   Kind = "GPU memory"                    // bytes, may shrink
	LogContent  Kind = "new log content"               // lines
	SocketQueue Kind = "socket queues"                 // bytes that wait to be read or sent, may shrink
	Births      Kind = "new processes"                 // count
	BuildCache  Kind = "compile cache"                 // bytes, or files where no byte was added
	Downloaded  Kind = "download"                      // bytes
	PageCache   Kind = "page cache of the model files" // bytes, may shrink
)

// Move is one counter that moved between two frames.
type Move struct {
	Kind Kind
	// PID is the process, or 0 for the whole host (GPU, log).
	PID int
	// Delta is the change, PerS the change per second, both in the kind's unit.
	Delta float64
	PerS  float64
	// At is where the later value stands in the snapshot; Value is it.
	At    []any
	Value float64
	// Noise: it is what something that waits does by the way (see noise.go), and
	// leads nowhere, however much it is.
	Noise bool
}

// Movement is what moved between the first and the last frame.
type Movement struct {
	// Looked is false with fewer than two frames: then nothing is known.
	Looked bool
	// WindowMS is the time between the first and the last frame.
	WindowMS float64
	// First and Last are indexes into Snapshot.Frames.
	First, Last int
	Moves       []Move
	// ThreadsLooked is the number of threads seen in two frames, ThreadsRan
	// how many of them ran in between. Zero looked: not known.
	ThreadsLooked, ThreadsRan int
	// demand is, by PID, the time that threads ran or waited for a processor
	// between two looks at them, as a share of one processor: what a process
	// would use if it had the machine for itself.
	demand map[int]float64
	// ran and waited are the two parts of it, over all processes together.
	ran, waited float64
	// beside are processes of the tree that are no part of the server.
	beside map[int]bool
}

// Delta is the sum of a kind over these processes; over all with none given.
func (m *Movement) Delta(k Kind, pids ...int) float64 {
	var d float64
	for i := range m.Moves {
		if m.Moves[i].Kind == k && (len(pids) == 0 || contains(pids, m.Moves[i].PID)) {
			d += m.Moves[i].Delta
		}
	}
	return d
}

// Rate is Delta per second of the window.
func (m *Movement) Rate(k Kind, pids ...int) float64 {
	if m.WindowMS <= 0 {
		return 0
	}
	return m.Delta(k, pids...) / m.WindowMS * 1000
}

// Most is the largest move of a kind; nil if nothing moved.
func (m *Movement) Most(k Kind) *Move {
	var most *Move
	for i := range m.Moves {
		if mv := &m.Moves[i]; mv.Kind == k && (most == nil || mv.Delta > most.Delta) {
			most = mv
		}
	}
	return most
}

// CPUShare is the share of one CPU that a process used over the window, and
// the user part of it: 1 is one CPU fully busy.
func (m *Movement) CPUShare(pid int) (total, user float64) {
	user = m.Rate(CPUUser, pid) / 1000
	return user + m.Rate(CPUSystem, pid)/1000, user
}

// Demand is the share of one processor that a process used or waited for. On a
// crowded machine a thread that computes gets a tenth of a processor and wants
// a whole one.
func (m *Movement) Demand(pid int) float64 {
	share, _ := m.CPUShare(pid)
	return max(share, m.demand[pid])
}

// Busiest is the process of the tree that used or wanted most processor time:
// its share of one processor, what it would use on an idle machine, and how
// much of that is user code.
func Busiest(s *evidence.Snapshot, m *Movement) (pid int, share, demand, user float64) {
	for i := range s.Processes {
		id := s.Processes[i].PID
		d := m.Demand(id)
		if d <= demand {
			continue
		}
		sh, u := m.CPUShare(id)
		pid, share, demand, user = id, sh, d, 0
		if sh > 0 {
			user = d * u / sh
		}
	}
	return pid, share, demand, user
}

func contains(pids []int, pid int) bool {
	for _, p := range pids {
		if p == pid {
			return true
		}
	}
	return false
}

// movementOf is the movement until whyhang asked the server something: after
// that it may be whyhang's own doing.
func movementOf(s *evidence.Snapshot) Movement {
	last := len(s.Frames) - 1
	for last >= 0 && s.Frames[last].During != "" {
		last--
	}
	return Between(s, 0, last)
}

// movementAsked is the movement while the check was under way; not looked if
// there was none.
func movementAsked(s *evidence.Snapshot) Movement {
	first, last := -1, -1
	for i := range s.Frames {
		if s.Frames[i].During == "check" {
			if first < 0 {
				first = max(0, i-1)
			}
			last = i
		}
	}
	return Between(s, first, last)
}

// Between is what moved from one frame to a later one.
func Between(s *evidence.Snapshot, from, to int) Movement {
	m := Movement{First: from, Last: to}
	if from < 0 || to <= from || to >= len(s.Frames) {
		return m
	}
	first, last := &s.Frames[from], &s.Frames[to]
	m.WindowMS = last.SinceMS - first.SinceMS
	if m.WindowMS <= 0 {
		return m
	}
	m.Looked = true
	m.beside = besideServer(s)
	for j := range last.Processes {
		if !m.beside[last.Processes[j].PID] {
			m.compare(first, &last.Processes[j], j)
		}
	}
	m.threads(s)
	m.gpus(first, last)
	m.logs(s)
	m.queues(first, last)
	m.births(s, first, last)
	m.caches(s)
	m.pageCache(s)
	m.markNoise(s)
	sort.SliceStable(m.Moves, func(i, j int) bool { return m.Moves[i].Kind < m.Moves[j].Kind })
	return m
}

// compare adds the moves of one process.
func (m *Movement) compare(first *evidence.Frame, b *evidence.ProcessFrame, j int) {
	i := ProcessAt(first, b.PID)
	if i < 0 || b.State == "" {
		return
	}
	a := &first.Processes[i]
	counter := func(k Kind, name string, from, to uint64) {
		if to > from {
			m.add(Move{Kind: k, PID: b.PID, Delta: float64(to - from), Value: float64(to),
				At: []any{"frames", m.Last, "processes", j, name}})
		}
	}
	level := func(k Kind, name string, from, to *uint64) {
		if from != nil && to != nil && *from != *to {
			m.add(Move{Kind: k, PID: b.PID, Delta: float64(*to) - float64(*from), Value: float64(*to),
				At: []any{"frames", m.Last, "processes", j, name}})
		}
	}
	counter(CPUUser, "user_ms", a.UserMS, b.UserMS)
	counter(CPUSystem, "system_ms", a.SystemMS, b.SystemMS)
	counter(CPUChildren, "child_user_ms", a.ChildUserMS, b.ChildUserMS)
	counter(Faults, "minor_faults", a.MinorFaults, b.MinorFaults)
	level(MemoryAnon, "rss_anon_bytes", a.RSSAnonBytes, b.RSSAnonBytes)
	level(MemoryFile, "rss_file_bytes", a.RSSFileBytes, b.RSSFileBytes)
	level(MemoryShmem, "rss_shmem_bytes", a.RSSShmemBytes, b.RSSShmemBytes)
	level(BytesRead, "read_char_bytes", a.ReadCharBytes, b.ReadCharBytes)
	level(DiskRead, "read_bytes", a.ReadBytes, b.ReadBytes)
	level(BytesOut, "write_char_bytes", a.WriteCharBytes, b.WriteCharBytes)
}

func (m *Movement) add(mv Move) {
	mv.PerS = mv.Delta / m.WindowMS * 1000
	m.Moves = append(m.Moves, mv)
}

// threads compares the first and the last of the frames that looked at threads.
func (m *Movement) threads(s *evidence.Snapshot) {
	a, b := -1, -1
	for i := range s.Frames[:m.Last+1] {
		if !hasThreads(&s.Frames[i]) {
			continue
		}
		// A window with one look at threads is compared with the look before.
		if b = i; a < 0 || i <= m.First {
			a = i
		}
	}
	if a < 0 || a == b {
		return
	}
	gapNS := (s.Frames[b].SinceMS - s.Frames[a].SinceMS) * 1e6
	m.demand = map[int]float64{}
	for j := range s.Frames[b].Processes {
		p := &s.Frames[b].Processes[j]
		i := ProcessAt(&s.Frames[a], p.PID)
		if i < 0 || m.beside[p.PID] {
			continue
		}
		before := threadsByTID(&s.Frames[a].Processes[i])
		for k := range p.Threads {
			t := &p.Threads[k]
			old := before[t.TID]
			if old == nil || old.Slices == nil || t.Slices == nil || old.RunNS == nil || t.RunNS == nil {
				continue
			}
			m.ThreadsLooked++
			if old.DelayNS != nil && t.DelayNS != nil {
				ran, waited := float64(*t.RunNS-*old.RunNS)/gapNS, float64(*t.DelayNS-*old.DelayNS)/gapNS
				m.demand[p.PID] += ran + waited
				m.ran, m.waited = m.ran+ran, m.waited+waited
			}
			if *t.Slices != *old.Slices || *t.RunNS != *old.RunNS {
				m.ThreadsRan++
				m.add(Move{Kind: ThreadRuns, PID: p.PID, Delta: float64(*t.Slices - *old.Slices), Value: float64(*t.Slices),
					At: []any{"frames", b, "processes", j, "threads", k, "slices"}})
			}
		}
	}
}

func (m *Movement) gpus(first, last *evidence.Frame) {
	for j := range last.GPUs {
		b := &last.GPUs[j]
		for i := range first.GPUs {
			a := &first.GPUs[i]
			if a.Index != b.Index || a.MemoryUsedBytes == nil || b.MemoryUsedBytes == nil || *a.MemoryUsedBytes == *b.MemoryUsedBytes {
				continue
			}
			m.add(Move{Kind: GPUMemory, Delta: float64(*b.MemoryUsedBytes) - float64(*a.MemoryUsedBytes), Value: float64(*b.MemoryUsedBytes),
				At: []any{"frames", m.Last, "gpus", j, "memory_used_bytes"}})
		}
	}
}

// logs adds up new content over all frames, as each frame counts from the one
// before.
func (m *Movement) logs(s *evidence.Snapshot) {
	for i := m.First + 1; i <= m.Last; i++ {
		for j := range s.Frames[i].Logs {
			if l := &s.Frames[i].Logs[j]; l.NewContent > 0 {
				m.add(Move{Kind: LogContent, Delta: float64(l.NewContent), Value: float64(l.NewContent),
					At: []any{"frames", i, "logs", j, "new_content"}})
			}
		}
	}
}

// queues is what came into the queues of the tree's sockets, or was read and sent
// from them. Requests that pile up are no movement towards an end.
func (m *Movement) queues(first, last *evidence.Frame) {
	if first.Sockets == nil || last.Sockets == nil {
		return
	}
	for _, q := range []struct {
		name     string
		from, to int
	}{{"rx_queue_bytes", first.Sockets.RxQueueBytes, last.Sockets.RxQueueBytes}, {"tx_queue_bytes", first.Sockets.TxQueueBytes, last.Sockets.TxQueueBytes}} {
		if q.from != q.to {
			m.add(Move{Kind: SocketQueue, Delta: float64(q.to - q.from), Value: float64(q.to), At: []any{"frames", m.Last, "sockets", q.name}})
		}
	}
}

// births counts processes of the last frame that the first did not have, as far
// as they are the server's: tools that only look at something come and go beside
// a server that hangs as well.
func (m *Movement) births(s *evidence.Snapshot, first, last *evidence.Frame) {
	for j := range last.Processes {
		pid := last.Processes[j].PID
		if ProcessAt(first, pid) < 0 && Lives(last.Processes[j].State) && !m.beside[pid] && !onlyLooks[nameOf(s, pid)] {
			m.add(Move{Kind: Births, PID: last.Processes[j].PID, Delta: 1, Value: float64(last.Processes[j].PID),
				At: []any{"frames", m.Last, "processes", j, "pid"}})
		}
	}
}

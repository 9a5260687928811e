package rules_test

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// sleepsIn is a look at a thread that sleeps in a call.
func sleepsIn(tid int, syscall string) evidence.ThreadLook {
	return evidence.ThreadLook{State: "S", Syscall: fmt.Sprintf("%s 0x7f10%06x 0x7f2000", syscall, tid), RunNS: ptr(uint64(90000 + tid)), Slices: ptr(uint64(12))}
}

// ownedWait is a thread asleep for a lock with that owner.
func ownedWait(pid, tid int, o evidence.LockOwner) evidence.Wait {
	l := sleepsIn(tid, "202 "+o.Addr+" 0x80 0x2 0x0 0x0 0x0")
	return evidence.Wait{PID: pid, TID: tid, A: l, B: l, Futex: &evidence.Futex{Call: "futex", Addr: o.Addr, Op: 0x80, Private: true, Local: true, Val: 2, Word: ptr(uint32(2)), Owner: &o}}
}

// idleWait is a thread asleep on a condition variable.
func idleWait(pid, tid int) evidence.Wait {
	l := sleepsIn(tid, "202 0x7f7788 0x189 0x0 0x0 0x0 0xffffffff")
	return evidence.Wait{PID: pid, TID: tid, A: l, B: l, Futex: &evidence.Futex{Call: "futex", Addr: "0x7f7788", Op: 0x189, Command: 9, Private: true, Local: true, Word: ptr(uint32(0)), Caller: "pthread_cond_wait"}}
}

// blockedWait is a thread asleep in a call that certain processes can end.
func blockedWait(pid, tid int, call string, b evidence.Blocked) evidence.Wait {
	l := sleepsIn(tid, call)
	return evidence.Wait{PID: pid, TID: tid, A: l, B: l, Blocked: &b}
}

// whole says in both readings how many threads the processes have.
func (b *snap) whole(threads map[int]int) *snap {
	for i := range b.s.Waits {
		for _, p := range b.s.Processes {
			if n := threads[p.PID]; n > 0 {
				b.s.Waits[i].Processes = append(b.s.Waits[i].Processes, evidence.WaitProcess{PID: p.PID, Threads: n, ThreadsAfter: n})
			}
		}
	}
	return b
}

// frameOf is the threads of waits, as a frame shows them.
func frameOf(waits ...evidence.Wait) []evidence.ThreadFrame {
	var all []evidence.ThreadFrame
	for _, w := range waits {
		wchan := "futex_do_wait"
		if w.Blocked != nil {
			wchan = "anon_pipe_read"
		}
		all = in(all, w.TID, "worker", w.A.State, w.A.Syscall, wchan)
	}
	return all
}

// pipeSnap is a parent that waits for its child to end, and the child that
// writes to a pipe which readers hold.
func pipeSnap(readers ...int) *snap {
	parent := blockedWait(500, 500, "61 0xffffffff 0x7ffc 0x0 0x0 0x0 0x0", evidence.Blocked{Kind: evidence.BlockChild, FD: -1, Wakers: []evidence.Waker{{PID: 501, Name: "child"}}})
	w := evidence.Blocked{Kind: evidence.BlockPipeWrite, FD: 1, Object: "pipe:[77]"}
	for _, pid := range readers {
		w.Wakers = append(w.Wakers, evidence.Waker{PID: pid, FD: ptr(5)})
	}
	child := blockedWait(501, 501, "1 0x1 0x7f00 0x1000 0x0 0x0 0x0", w)
	b := aServer(500, "./parent").process(501, 500, "./child")
	b.frames(map[int]moves{500: {threads: frameOf(parent)}, 501: {threads: frameOf(child)}}, 0, 0.11)
	return b.waits(parent, child).whole(map[int]int{500: 1, 501: 1})
}

// gilSnap is a Python process whose GIL one thread keeps, in a native call,
// for so many looks as there are numbers of changes of hands, 2.2 s apart.
func gilSnap(holder evidence.Wait, switches ...uint64) *snap {
	b := aServer(600, "python3", "serve.py")
	threads := frameOf(holder)
	threads[0].Name = "native"
	b.frames(map[int]moves{600: {threads: threads}}, 0, 2.2, 4.4)
	for i, n := range switches {
		gil := evidence.PythonProcess{PID: 600, Version: "3.12", GIL: &evidence.PythonGIL{Cond: "0x55e0", Locked: true, SwitchNumber: n, HolderNSTID: 601, HolderTID: 601},
			Threads: []evidence.PythonThread{{TID: 601, Frames: []evidence.PythonFrame{{File: "/srv/serve.py", Function: "load", Line: 40}}}}}
		look := evidence.WaitLook{At: b.s.Frames[i].At, Python: []evidence.PythonProcess{gil}, Waits: []evidence.Wait{holder}}
		for tid := 602; tid < 605; tid++ {
			l := sleepsIn(tid, "202 0x55e0 0x89 0x0 0x7ffc 0x0 0xffffffff")
			l.RunNS = ptr(uint64(1000*tid) + n + uint64(i)*5000)
			look.Waits = append(look.Waits, evidence.Wait{PID: 600, TID: tid, A: l, B: l, Futex: &evidence.Futex{Call: "futex", Addr: "0x55e0", Op: 0x89, Command: 9, Private: true, Local: true, Timed: true,
				Python: &evidence.PythonLock{Kind: evidence.PythonGILWait, OwnerNSTID: 601, OwnerTID: 601}}})
		}
		b.s.Waits = append(b.s.Waits, look)
	}
	return b
}

// serving is a process of n threads that all sleep on condition variables,
// and that listens. Clients wait for it if it has no other thread.
func serving(n, total int) *snap {
	queue := 3
	if total > n {
		queue = 0
	}
	var waits []evidence.Wait
	for i := range n {
		waits = append(waits, idleWait(700, 700+i))
	}
	b := aServer(700, "./server").frames(map[int]moves{700: {threads: frameOf(waits...)}}, 0, 2, 4, 5.5).listens(700, 8000, queue)
	return b.waits(waits...).whole(map[int]int{700: total})
}

func waitCases() []builtCase {
	ended := evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x7f0010", NSTID: 4400, Proof: evidence.ProofCode, Ended: true}
	forked := evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x7f0010", NSTID: 801, TID: 801, PID: 800, Proof: evidence.ProofCode, Forked: true}
	nativeRead := blockedWait(600, 601, "0 0x5 0x7f00 0x1000 0x0 0x0 0x0", evidence.Blocked{Kind: evidence.BlockPipeRead, FD: 5, Object: "/mnt/x", Unseen: "not a pipe"})
	orphan := func(o evidence.LockOwner) *snap {
		w := ownedWait(800, 802, o)
		if o.Forked {
			w = ownedWait(803, 803, o)
		}
		b := aServer(800, "./server")
		m := map[int]moves{800: {threads: frameOf(w)}}
		if o.Forked {
			b.process(803, 800, "./server")
			m = map[int]moves{803: {threads: frameOf(w)}}
		}
		return b.frames(m, 0, 0.11).waits(w).whole(map[int]int{w.PID: 1})
	}
	// beside adds a first thread that waits for something else.
	beside := func(b *snap, pid int) *snap {
		b.s.Frames = nil
		poll := in(nil, pid, "main", "S", "7 0x7ffc 0x1 0x3e8 0x0 0x0 0x0 0x7ffd 0x7f2000", "poll_schedule_timeout")
		b.frames(map[int]moves{pid: {threads: poll}}, 0, 2, 5.5)
		for i := range b.s.Waits {
			b.s.Waits[i].Processes = nil
		}
		return b.whole(map[int]int{pid: 2})
	}
	catches := func(b *snap, signals ...int) *snap {
		for i := range b.s.Waits {
			for j := range b.s.Waits[i].Processes {
				b.s.Waits[i].Processes[j].Caught = signals
			}
		}
		return b
	}
	selfLocked := func(ran bool) *snap {
		w := ownedWait(900, 901, evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x7f0010", NSTID: 901, TID: 901, PID: 900, Proof: evidence.ProofCode})
		threads := in(frameOf(w), 900, "main", "S", "7 0x7ffc 0x1 0x3e8 0x0 0x0 0x0 0x7ffd 0x7f2000", "poll_schedule_timeout")
		if ran {
			threads[1].State = "R"
		}
		return aServer(900, "./server").frames(map[int]moves{900: {threads: threads}}, 0, 2, 5.5).waits(w).whole(map[int]int{900: 2})
	}
	return []builtCase{
		{"self-lock-others-rest", want{
			Says:    "A thread waits for its own mutex and no other thread ran for seconds",
			Verdict: rule.Deadlocked, Cause: rule.LockCycle, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"lock-cycle"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"held by itself"},
		}, func() *evidence.Snapshot { return selfLocked(false).done() }},
		{"self-lock-as-an-event", want{
			Says:    "The same, but another thread runs now and then: some programs park a thread on its own mutex until another unlocks it",
			Verdict: rule.Unknown, Cause: rule.NotAServer, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"lock-cycle"},
		}, func() *evidence.Snapshot { return selfLocked(true).done() }},
		{"self-lock-idle-server", want{
			Says:    "The same in a process that listens: main parked for ever in an idle server",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"lock-cycle"},
		}, func() *evidence.Snapshot { return selfLocked(false).listens(900, 8000, 0).done() }},
		{"lock-cycle-and-a-foreign-answer", want{
			Says:    "A deadlocked server, and --url of another server on this host that answers",
			Verdict: rule.Deadlocked, Cause: rule.LockCycle, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"lock-cycle"}, Near: []rule.ID{"answers"},
		}, func() *evidence.Snapshot {
			b := abba("pthread_mutex_lock").checked(evidence.CheckPass, `it answered "4"`, answered("4"))
			b.s.Asked.URL, b.s.Check.URL, b.s.Sockets.SameNetNS = "http://127.0.0.1:9999", "http://127.0.0.1:9999", ptr(true)
			return b.done()
		}},
		{"foreign-answer", want{
			Says:    "A process that listens nowhere, and --url of another server on this host that answers",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Near:     []rule.ID{"answers", "no-answer"},
			Sentence: []string{"http://127.0.0.1:9999 is no socket of this server, which listens nowhere"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "./server").frames(map[int]moves{4242: {threads: sleepers(4245, 3, "idle")}}, 0, 2, 5.5).checked(evidence.CheckPass, `it answered "4"`, answered("4"))
			b.s.Asked.URL, b.s.Check.URL = "http://127.0.0.1:9999", "http://127.0.0.1:9999"
			return b.done()
		}},
		{"helper-paused", want{
			Says:    "A helper of a server is stopped; the server itself answers",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "paused"},
		}, func() *evidence.Snapshot {
			return aServer(700, "./server").process(701, 700, "sleep", "1000").frames(map[int]moves{701: {state: "T"}}, 0, 2, 5.5).listens(700, 8000, 0).
				checked(evidence.CheckPass, `it answered "4"`, answered("4")).done()
		}},
		{"compiler-hangs", want{
			Says:    "A server that is not up, with a build tool among its children that does nothing",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"kernel-build"},
		}, func() *evidence.Snapshot {
			b := vllmServer()
			return b.process(10500, 10226, "ninja", "-v").frames(nil, 0, 2, 5.5).done()
		}},
		{"pipe-cycle", want{
			Says:    "A parent waits for its child, which cannot write because only the parent could read its pipe",
			Verdict: rule.Deadlocked, Cause: rule.PipeCycle, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"pipe-cycle"}, Near: []rule.ID{"lock-cycle"},
			Sentence: []string{"Thread 500 \"worker\" of process 500 \"parent\" waits for its child process 501 \"child\" to end; thread 501 \"worker\" of process 501 \"child\" writes to the full pipe:[77] (fd 1), whose other end only process 500 \"parent\" holds"},
		}, func() *evidence.Snapshot { return pipeSnap(500).done() }},
		{"pipe-cycle-with-a-reader", want{
			Says:    "The same, but somebody outside the tree holds the other end as well: it may still be read",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"pipe-cycle", "lock-cycle"},
		}, func() *evidence.Snapshot { return pipeSnap(500, 999).done() }},
		{"log-pipe-full", want{
			Says:    "vLLM's engine core has been in a write to its standard output for 20 s: the logger behind the pipe does not read",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"log-pipe-full"}, Near: []rule.ID{"pipe-cycle", "no-movement"},
			Sentence: []string{"process 77 \"tee\""},
		}, func() *evidence.Snapshot { return writingTo(1, 20000).done() }},
		{"log-pipe-slow", want{
			Says:    "The same for half a second: a logger that reads in batches",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"log-pipe-full"},
		}, func() *evidence.Snapshot { return writingTo(1, 500).done() }},
		{"pipe-full-but-no-log", want{
			Says:    "The same in a write to another pipe: that is not its log",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"log-pipe-full"},
		}, func() *evidence.Snapshot { return writingTo(7, 20000).done() }},
		{"gil-cycle", want{
			Says:    "A thread holds the GIL and waits for a mutex whose owner waits for the GIL",
			Verdict: rule.Deadlocked, Cause: rule.GILHeld, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"gil-cycle"}, Near: []rule.ID{"gil-held"},
			Sentence: []string{"(serve.py:40 in load) waits for mutex 0x7f0010, held by thread 602; thread 602 waits for the GIL, held by thread 601"},
		}, func() *evidence.Snapshot {
			return gilSnap(ownedWait(600, 601, evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x7f0010", NSTID: 602, TID: 602, PID: 600, Proof: evidence.ProofCode}), 88, 88, 88).done()
		}},
		{"gil-handed-over", want{
			Says:    "The same picture, but the GIL changed hands between the looks and came back",
			Verdict: rule.Unknown, Cause: rule.NotAServer, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"gil-cycle", "gil-held", "lock-cycle"},
		}, func() *evidence.Snapshot {
			return gilSnap(ownedWait(600, 601, evidence.LockOwner{Kind: evidence.KindMutex, Addr: "0x7f0010", NSTID: 602, TID: 602, PID: 600, Proof: evidence.ProofCode}), 88, 90, 92).done()
		}},
		{"gil-held", want{
			Says:    "A native read holds the GIL and may still return",
			Verdict: rule.Stalled, Cause: rule.GILHeld, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"gil-held"}, Near: []rule.ID{"gil-cycle"},
			Sentence: []string{"holds the GIL for more than 4 s, asleep in read (anon_pipe_read), serve.py:40 in load; 3 other threads wait"},
		}, func() *evidence.Snapshot { return gilSnap(nativeRead, 88, 88, 88).done() }},
		{"orphaned-lock", want{
			Says:    "A thread ended with a mutex in its hands; another waits for it",
			Verdict: rule.Deadlocked, Cause: rule.OrphanedLock, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"orphaned-lock"}, Near: []rule.ID{"lock-cycle"},
			Sentence: []string{"waits for mutex 0x7f0010, whose owner, thread 4400, has ended"},
		}, func() *evidence.Snapshot { return orphan(ended).done() }},
		{"orphaned-lock-others-rest", want{
			Says:    "The same, beside another thread that did not run for seconds",
			Verdict: rule.Deadlocked, Cause: rule.OrphanedLock, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"orphaned-lock"},
			Sentence: []string{"It does not move again by itself"},
		}, func() *evidence.Snapshot {
			o := ended
			o.NSTID = 900
			b := aServer(800, "./server")
			return beside(b.waits(ownedWait(800, 802, o)), 800).done()
		}},
		{"fork-lock-of-the-forking-thread", want{
			Says:    "The lock was held by the thread that forked: it is the child's first thread now, lives, and will release it",
			Verdict: rule.Unknown, Cause: rule.NotAServer, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"orphaned-lock"},
		}, func() *evidence.Snapshot {
			b := aServer(803, "./server")
			w := ownedWait(803, 804, forked)
			return beside(b.waits(w), 803).done()
		}},
		{"pipe-cycle-with-a-handler", want{
			Says:    "A process reads its own pipe, into which its handler of SIGCHLD writes",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"pipe-cycle"},
		}, func() *evidence.Snapshot { return catches(pipeSnap(500), 17).done() }},
		{"pipe-cycle-ended-by-people", want{
			Says:    "The same, with a handler of SIGTERM alone",
			Verdict: rule.Deadlocked, Cause: rule.PipeCycle, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"pipe-cycle"},
			Sentence: []string{"Neither", "by itself"},
		}, func() *evidence.Snapshot { return catches(pipeSnap(500), 11, 15, 33).done() }},
		{"lost-wakeup-with-a-handler", want{
			Says:    "A server that listens and sleeps, with a handler for SIGUSR1",
			Verdict: rule.Unresponsive, Cause: rule.AcceptStuck, Strength: rule.Likely, ExitCode: 6,
			Findings: []rule.ID{"accept-stuck"},
			Near:     []rule.ID{"lost-wakeup"},
		}, func() *evidence.Snapshot { return catches(serving(9, 9), 10).done() }},
		{"lost-wakeup-pre-fork", want{
			Says:    "The parent of a pre-fork server sleeps; its child waits for connections",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"lost-wakeup"},
		}, func() *evidence.Snapshot {
			b := serving(9, 9).queues(8000, 0).process(760, 700, "./server")
			for i := range b.s.Frames {
				b.s.Frames[i].Processes = append(b.s.Frames[i].Processes, moves{}.frame(760, 0, false))
			}
			return b.done()
		}},
		{"orphaned-lock-not-seen", want{
			Says:    "The owner was not found, which is not to say that it has ended",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"orphaned-lock"},
		}, func() *evidence.Snapshot {
			o := ended
			o.Ended = false
			return orphan(o).done()
		}},
		{"fork-lock", want{
			Says:    "A child was forked while a thread of its parent held a lock",
			Verdict: rule.Deadlocked, Cause: rule.ForkLock, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"orphaned-lock"},
			Sentence: []string{"waits for mutex 0x7f0010, held by thread 801 of process 800 \"server\" when this process was forked from it"},
		}, func() *evidence.Snapshot { return orphan(forked).done() }},
		{"lost-wakeup", want{
			Says:    "A server that listens and of which every thread sleeps on a condition variable",
			Verdict: rule.Deadlocked, Cause: rule.LostWakeup, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"lost-wakeup"}, Near: []rule.ID{"lock-cycle", "no-movement"},
			Sentence: []string{"All 9 threads of process 700 \"server\", which listens on 0.0.0.0:8000, sleep"},
		}, func() *evidence.Snapshot { return serving(9, 9).done() }},
		{"lost-wakeup-one-awaits-the-network", want{
			Says:    "The same, with one thread more, that waits for connections",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"lost-wakeup", "lock-cycle", "no-movement"},
		}, func() *evidence.Snapshot { return serving(9, 10).done() }},
	}
}

// writingTo is vLLM's engine core asleep in a write to a pipe behind that
// descriptor, for that long.
func writingTo(fd int, asleepMS float64) *snap {
	b := vllmServer().frames(nil, 0, 0.1, 1, 5, 10)
	core := b.s.Processes[1].PID
	for i := range b.s.Processes {
		if len(b.s.Processes[i].Argv) > 0 && strings.HasPrefix(b.s.Processes[i].Argv[0], "VLLM::EngineCore") {
			core = b.s.Processes[i].PID
		}
	}
	w := blockedWait(core, core, fmt.Sprintf("1 0x%x 0x7f0000 0xd8e 0x0 0x0 0x0", fd), evidence.Blocked{Kind: evidence.BlockPipeWrite, FD: fd, Object: "pipe:[88]",
		Wakers: []evidence.Waker{{PID: 77, Name: "tee", FD: ptr(0)}}, Unseen: "somebody else's descriptors", Likely: true})
	w.AsleepMS = &asleepMS
	return b.waits(w).waits(w)
}

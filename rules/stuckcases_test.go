package rules_test

import (
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// waits adds two readings of the lock words, 110 ms apart.
func (b *snap) waits(waits ...evidence.Wait) *snap {
	for n := range 2 {
		b.s.Waits = append(b.s.Waits, evidence.WaitLook{At: b.s.Taken.Add(time.Duration(n-1) * 110 * time.Millisecond), Waits: waits})
	}
	return b
}

// mutexWait is a thread asleep for a mutex that owner holds.
func mutexWait(pid, tid, owner, lock int, caller string) evidence.Wait {
	addr := fmt.Sprintf("0x55d0%04x", lock)
	proof := evidence.ProofLayout
	if caller != "" {
		proof = evidence.ProofCode
	}
	look := evidence.ThreadLook{State: "S", Syscall: fmt.Sprintf("202 %s 0x80 0x2 0x0 0x0 0x0 0x7f10%06x 0x7f2000", addr, tid), RunNS: ptr(uint64(16762)), Slices: ptr(uint64(3))}
	return evidence.Wait{PID: pid, TID: tid, A: look, B: look, Futex: &evidence.Futex{Addr: addr, Op: 0x80, Private: true, Val: 2, Word: ptr(uint32(2)), Caller: caller,
		Mutex: &evidence.MutexWords{Lock: 2, OwnerNSTID: owner, NUsers: 2, ListZero: true},
		Owner: &evidence.LockOwner{Kind: evidence.KindMutex, Addr: addr, NSTID: owner, TID: owner, PID: pid, Proof: proof}}}
}

// abba is a process with two threads in a circle and n idle ones.
func abba(caller string) *snap {
	threads := sleepers(4245, 10, "idle")
	for i, name := range []string{"a-then-b", "b-then-a"} {
		w := mutexWait(4242, 4243+i, 0, i, "")
		threads = in(threads, 4243+i, name, "S", w.A.Syscall, "futex_do_wait")
	}
	b := aServer(4242, "./server").frames(map[int]moves{4242: {threads: threads}}, 0, 0.11)
	return b.waits(mutexWait(4242, 4243, 4244, 1, caller), mutexWait(4242, 4244, 4243, 2, caller), mutexWait(4242, 4245, 4243, 2, caller))
}

func deadlockCases() []builtCase {
	return []builtCase{
		{"lock-cycle", want{
			Says:    "Two threads hold one mutex each and want the other's; a third only waits for them",
			Verdict: rule.Deadlocked, Cause: rule.LockCycle, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"lock-cycle"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"Thread 4243 \"a-then-b\" waits for mutex 0x55d00001, held by thread 4244 \"b-then-a\"; thread 4244"},
		}, func() *evidence.Snapshot { return abba("pthread_mutex_lock").done() }},
		{"lock-cycle-lookalike", want{
			Says:    "Memory that looks like two crossed mutexes, with no lock function on the stacks: never a deadlock",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"lock-cycle"},
		}, func() *evidence.Snapshot { return abba("").done() }},
		{"lock-handed-over", want{
			Says:    "The same picture, but one thread ran between the looks: locks are being handed over",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"lock-cycle"},
		}, func() *evidence.Snapshot {
			b := abba("pthread_mutex_lock")
			b.s.Waits[1].Waits = append([]evidence.Wait(nil), b.s.Waits[1].Waits...)
			b.s.Waits[1].Waits[1].A.RunNS, b.s.Waits[1].Waits[1].B.RunNS = ptr(uint64(99999)), ptr(uint64(99999))
			return b.done()
		}},
		{"lock-cycle-but-answers", want{
			Says:    "A server with two deadlocked threads that answers all the same: ready, with a warning",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "lock-cycle"},
		}, func() *evidence.Snapshot {
			return abba("pthread_mutex_lock").listens(4242, 8000, 0).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
	}
}

// vllmServer is vLLM with one worker, as it runs on two CPUs.
func vllmServer() *snap {
	b := aServer(9414, "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/smollm2-135m", "--host", "127.0.0.1", "--port", "8000", "--tensor-parallel-size", "2")
	b.process(10226, 9414, "VLLM::EngineCore").process(10239, 10226, "VLLM::Worker_TP0").process(10240, 10226, "VLLM::Worker_TP1")
	return b.process(10100, 9414, "/opt/vllm/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(5)")
}

func brokenCases() []builtCase {
	died := moves{state: "Z", waitStatus: ptr(9)}
	return []builtCase{
		{"dead-worker", want{
			Says:    "vLLM with a worker killed by signal 9; /health still answers",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"dead-child"}, Near: []rule.ID{"ready-by-its-word", "paused"},
			Sentence: []string{"killed by signal 9 (SIGKILL)", "10240"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{10240: died}, 0, 0.1, 0.6)
			return b.listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"dead-helper", want{
			Says:    "vLLM whose resource tracker has ended: no part that it needs",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"dead-child"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{10100: {state: "Z", waitStatus: ptr(0)}}, 0, 0.1, 1, 10)
			b.s.Asked.Passive = true
			return b.listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"fatal-line", want{
			Says:    "A log whose first fatal line says why, and no ready line after it",
			Verdict: rule.Broken, Cause: rule.FatalError, Strength: rule.Likely, ExitCode: 7,
			Findings: []rule.ID{"fatal-error"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"CUDA out of memory", "line 30"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 5, 10).log("vllm-0.32-cpu-first-start", 33, 60)
			return b.fatal(30).done()
		}},
		{"fatal-line-then-ready", want{
			Says:    "The same line, and the ready line after it: a failed attempt, no failure",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"fatal-error"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 5, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.s.Asked.Passive = true
			return b.fatal(30).done()
		}},
		{"fatal-line-of-a-rank", want{
			Says:    "TP1 lacked GPU memory, and TP0 went on",
			Verdict: rule.Broken, Cause: rule.FatalError, Strength: rule.Likely, ExitCode: 7,
			Findings: []rule.ID{"fatal-error"}, Near: []rule.ID{"ready-by-its-word"},
		}, func() *evidence.Snapshot {
			return sglangServer(2, 2).frames(nil, 0, 0.1, 5, 10).sglangLog(116, 60).fatal(115).ofRank("TP1").done()
		}},
		{"fatal-line-then-the-rank-goes-on", want{
			Says:    "The same line, and a later one with which TP1 ends loading: it got over it",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"fatal-error"},
		}, func() *evidence.Snapshot {
			return sglangServer(2, 2).frames(nil, 0, 0.1, 5, 10).sglangLog(117, 60).fatal(115).ofRank("TP1").done()
		}},
	}
}

// ofRank gives the last mark a rank.
func (b *snap) ofRank(rank string) *snap {
	l := &b.s.Logs[0]
	l.Marks[len(l.Marks)-1].Rank = rank
	return b
}

// fatal adds a fatal line to the log.
func (b *snap) fatal(line int64) *snap {
	l := &b.s.Logs[0]
	l.Marks = append(l.Marks, evidence.Mark{Signature: "common.any.cuda-oom", Engine: "common", Kind: evidence.KindFatal, Count: 1,
		First: evidence.Hit{Line: line, Text: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}})
	return b
}

func stalledCases() []builtCase {
	return []builtCase{
		{"paused", want{
			Says:    "The root process is stopped by SIGSTOP",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"paused"}, Near: []rule.ID{"no-movement", "ready-by-its-word"},
			Sentence: []string{"paused", "process 9414"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{9414: {state: "T"}}, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"paused-job", want{
			Says:    "Ctrl-Z in its terminal stopped the whole job: to continue one process would not help",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"paused"}, Near: []rule.ID{"no-movement", "ready-by-its-word"},
			Sentence: []string{"process 9414", "So are 4 other processes"},
		}, pausedJob},
		{"traced-and-running", want{
			Says:    "A profiler is attached and the threads run: no pause",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word", "under-a-tool"}, Near: []rule.ID{"paused"}, Warnings: []string{"traced by perf"},
		}, func() *evidence.Snapshot {
			b := vllmServer()
			b.s.Processes[0].TracerPID, b.s.Processes[0].TracerName = 777, "perf"
			b.s.Asked.Passive = true
			return b.frames(nil, 0, 0.1, 1, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"held-by-tracer", want{
			Says:    "A debugger holds the process",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"paused"}, Sentence: []string{"process 777 (gdb)"},
		}, func() *evidence.Snapshot {
			b := vllmServer()
			b.s.Processes[0].TracerPID, b.s.Processes[0].TracerName = 777, "gdb"
			return b.frames(map[int]moves{9414: {state: "t"}}, 0, 0.1, 1.1).done()
		}},
		{"no-movement", want{
			Says:    "A model directory on a store that has stopped answering: nothing moved in 10 s",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"weights-read", "weights-convert", "phase-moves", "kernel-build"},
		}, func() *evidence.Snapshot {
			b := vllmServer().weights("/models/smollm2-135m/model.safetensors", 1<<31)
			return b.frames(map[int]moves{9414: {threads: sleepers(9414, 4, "python3")}}, 0, 0.1, 1, 5, 10.2).log("vllm-0.32-cpu-first-start", 37, 600).done()
		}},
		{"slow-movement", want{
			Says:    "The same server with 300 KB/s from its store: it moves",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"no-movement"},
		}, func() *evidence.Snapshot {
			path := "/models/smollm2-135m/model.safetensors"
			b := vllmServer().weights(path, 1<<31)
			return b.frames(map[int]moves{10100: {read: 300e3, path: path, from: 1 << 20, position: 300e3, system: 20}}, 0, 0.1, 1, 2, 3, 5, 10.2).log("vllm-0.32-cpu-first-start", 37, 600).done()
		}},
	}
}

package rules_test

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// sglangServer is SGLang with so many ranks on its command line, and the
// schedulers TP0 (PID 9500), TP1 (9501) and so on that live.
func sglangServer(tp, living int) *snap {
	b := aServer(9400, "python3", "-m", "sglang.launch_server", "--model-path", "/models/smollm2-135m", "--port", "30000", "--tp", fmt.Sprint(tp))
	for r := range living {
		b.process(9500+r, 9400, fmt.Sprintf("sglang::scheduler_TP%d", r))
	}
	return b.process(9490, 9400, "sglang::detokenizer")
}

// store makes TP0 listen and the given ranks connected to it.
func (b *snap) store(ranks ...int) *snap {
	b.s.Sockets.Listeners = append(b.s.Sockets.Listeners, evidence.Listener{Network: "tcp", Address: "127.0.0.1:24317", Port: 24317, Inode: 31317, Owner: evidence.OwnerDescriptor, PID: 9500})
	for _, pid := range ranks {
		b.s.Sockets.Connections = append(b.s.Sockets.Connections, evidence.Connection{Network: "tcp", Local: fmt.Sprintf("127.0.0.1:%d", 40000+pid), Remote: "127.0.0.1:24317", State: "ESTABLISHED", Inode: uint64(50000 + pid), PID: pid, PeerPID: 9500})
	}
	return b
}

// sglangLog is the log of SGLang's start with two ranks, so many lines of it.
func (b *snap) sglangLog(lines int64, silent float64) *snap {
	return b.log("sglang-0.5.23-cpu-tp2-debug", lines, silent)
}

// window are looks over ten seconds.
var window = []float64{0, 0.1, 1, 5, 10.2}

// facingWaits are two ranks that read from each other.
func facingWaits() []evidence.Wait {
	read := func(pid, peer int, connection string) evidence.Wait {
		return blockedWait(pid, pid, "45 0x7 0x7f00 0x1000 0x0 0x0 0x0", evidence.Blocked{Kind: evidence.BlockSocketRead, FD: 7, Object: fmt.Sprintf("socket:[%d]", 70000+pid),
			Connection: connection, QueuedBytes: ptr(uint64(0)), Wakers: []evidence.Waker{{PID: peer, Name: "sglang::schedul", FD: ptr(7)}, {PID: pid, Name: "sglang::schedul"}}})
	}
	return []evidence.Wait{read(9500, 9501, "127.0.0.1:24317 to 127.0.0.1:40001"), read(9501, 9500, "127.0.0.1:40001 to 127.0.0.1:24317")}
}

// outOfStep is a server of two ranks that read from each other, of which TP1 is
// a phase behind; each has so many threads.
func outOfStep(threads int) *snap {
	w := facingWaits()
	b := sglangServer(2, 2)
	looks := func(i int) []evidence.ThreadFrame {
		t := frameOf(w[i])
		if threads > 1 {
			t = in(t, w[i].TID+100, "sends-later", "S", "230 0x1 0x1 0x7ffc 0x0 0x0 0x0 0x7ffc 0x7f10", "hrtimer_nanosleep")
		}
		return t
	}
	b.frames(map[int]moves{9500: {threads: looks(0)}, 9501: {threads: looks(1)}}, window...)
	b.waits(w...).whole(map[int]int{9500: threads, 9501: threads})
	return b.sglangLog(63, 60)
}

// parentless is a scheduler alone, as the child of process 1.
func parentless(parent string) *evidence.Snapshot {
	b := aServer(9501, "sglang::scheduler_TP1")
	b.s.Target.ParentPID, b.s.Target.ParentName = 1, parent
	return b.frames(nil, window...).done()
}

func rankCases() []builtCase {
	meeting := func(b *snap, served bool) *snap {
		b.s.Processes[2].Env = map[string]string{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
		b.s.Sockets.Endpoints = []evidence.Endpoint{{Address: "127.0.0.1:29500", Local: ptr(true), Served: ptr(served)}}
		b.s.Logs[0].Marks = append(b.s.Logs[0].Marks, evidence.Mark{Signature: "common.communicator.connect", Engine: "common", Phase: evidence.PhaseCommunicator, Kind: evidence.KindRetry, Count: 3,
			First: evidence.Hit{Line: 54, Text: "[W222 22:53:41.1 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host 127.0.0.1:29500 - retrying (try=3, timeout=600000ms, delay=4511ms): Connection refused"}})
		return b
	}
	trying := func(retransmits int) *snap {
		b := sglangServer(2, 2).frames(nil, window...)
		b.s.Sockets.Connections = []evidence.Connection{{Network: "tcp", Local: "10.0.0.5:41000", Remote: "192.0.2.1:29500", State: "SYN_SENT", Inode: 8123, PID: 9501, Retransmits: retransmits}}
		return b.sglangLog(53, 60)
	}
	return append([]builtCase{
		{"reaped-scheduler", want{
			Says:    "SGLang that was ready and has lost a rank without a trace; the front still listens",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"missing-head"}, Near: []rule.ID{"ready-by-its-word", "dead-child", "missing-rank"},
			Sentence: []string{"scheduler TP1 is not there", "TP1 wrote line"},
		}, func() *evidence.Snapshot {
			return sglangServer(2, 1).frames(nil, window...).listens(9400, 30000, 0).sglangLog(971, 60).done()
		}},
		{"reaped-engine-core", want{
			Says:    "vLLM's front alone: its log names the PIDs of an engine core and a worker that are gone",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"missing-head"}, Near: []rule.ID{"ready-by-its-word"},
			Sentence: []string{"engine-core", "process 10226 by its own count"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/smollm2-135m", "--port", "8000")
			return b.frames(nil, window...).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"single-process-engine", want{
			Says:    "The same front with the engine inside it: no other process was ever there",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word", "distorting-flag"}, Near: []rule.ID{"missing-head"}, Warnings: []string{"VLLM_ENABLE_V1_MULTIPROCESSING=0"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/smollm2-135m", "--port", "8000")
			b.last().Env = map[string]string{"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
			b.s.Asked.Passive = true
			b.frames(nil, window...).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			for i := range b.s.Logs[0].Marks {
				m := &b.s.Logs[0].Marks[i]
				for _, h := range []*evidence.Hit{&m.First, m.Last} {
					if h != nil {
						h.Text = strings.NewReplacer("pid=10226", "pid=9414", "pid=10239", "pid=9414").Replace(h.Text)
					}
				}
			}
			return b.done()
		}},
		{"untitled-parts", want{
			Says:    "vLLM of old: its parts live and show no title",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"missing-head", "dead-child"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/smollm2-135m", "--port", "8000")
			b.process(10226, 9414, "python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=9)", "--multiprocessing-fork")
			b.process(10239, 10226, "python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=11)", "--multiprocessing-fork")
			b.s.Asked.Passive = true
			return b.frames(nil, window...).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).done()
		}},
		{"untitled-part-killed", want{
			Says:    "The same, and the only child was killed and not reaped",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"dead-child"}, Near: []rule.ID{"ready-by-its-word"}, Sentence: []string{"killed by signal 9"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/models/smollm2-135m", "--port", "8000")
			b.process(10226, 9414, "python3")
			b.last().Argv, b.last().State = nil, "Z"
			return b.frames(map[int]moves{10226: {state: "Z", waitStatus: ptr(9)}}, window...).listens(9414, 8000, 0).done()
		}},
		{"forked-copy-ends", want{
			Says:    "A rank forks for a compiler; the copy had the rank's title when it was seen and is gone: no part",
			Verdict: rule.Loading, Cause: rule.CommunicatorUp, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"dead-child", "missing-head"},
		}, func() *evidence.Snapshot {
			b := sglangServer(2, 2).process(9600, 9500, "sglang::scheduler_TP0")
			return b.frames(map[int]moves{9600: {gone: true}, 9500: {user: 300, anon: 30 << 20}, 9501: {user: 300, anon: 30 << 20}}, 0, 0.1, 1, 2.1).sglangLog(53, 2).done()
		}},
		{"left-behind", want{
			Says:    "A scheduler whose launcher was killed, now a child of systemd",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"left-behind"}, Near: []rule.ID{"no-movement", "missing-head"}, Sentence: []string{"left behind", "scheduler TP1 (process 9501)", "systemd"},
		}, func() *evidence.Snapshot { return parentless("systemd") }},
		{"engine-as-a-library", want{
			Says:    "The same scheduler, and its parent is a Python program that has the engine as a library",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"left-behind"},
		}, func() *evidence.Snapshot { return parentless("python3") }},
		{"missing-rank", want{
			Says:    "Two of three ranks have met at the store, the third was never started, nothing moves",
			Verdict: rule.Deadlocked, Cause: rule.MissingRank, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"missing-rank"}, Near: []rule.ID{"missing-head", "no-movement", "waiting-for-peer"},
			Sentence: []string{"3 needed (--tp 3), 2 living, scheduler TP2 is missing", "2 of 3 have met"},
		}, func() *evidence.Snapshot {
			return sglangServer(3, 2).frames(nil, window...).store(9501).sglangLog(53, 60).done()
		}},
		{"missing-rank-without-title", want{
			Says:    "The same, and a child without a title that may be the third: nobody is missing",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"missing-rank", "missing-head"},
		}, func() *evidence.Snapshot {
			b := sglangServer(3, 2).process(9502, 9400, "python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5)", "--multiprocessing-fork")
			return b.frames(nil, window...).store(9501).sglangLog(53, 60).done()
		}},
		{"missing-rank-launcher-works", want{
			Says:    "The same without that child, and the launcher works: the third rank is still to come",
			Verdict: rule.Loading, Cause: rule.CommunicatorUp, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"missing-rank", "missing-head"},
		}, func() *evidence.Snapshot {
			return sglangServer(3, 2).frames(map[int]moves{9400: {user: 700}}, window...).store(9501).sglangLog(53, 60).done()
		}},
	}, rendezvousCases(meeting, trying)...)
}

func rendezvousCases(meeting func(*snap, bool) *snap, trying func(int) *snap) []builtCase {
	return []builtCase{
		{"rank-mismatch", want{
			Says:    "Two ranks read from each other and all their threads sleep there; one is a phase behind",
			Verdict: rule.Deadlocked, Cause: rule.RankMismatch, Strength: rule.Proved, ExitCode: 5,
			Findings: []rule.ID{"rank-mismatch"}, Near: []rule.ID{"pipe-cycle", "no-movement", "missing-rank"},
			Sentence: []string{"scheduler TP0 (process 9500) and scheduler TP1 (process 9501) each wait to receive", "Rank TP1 is still in the phase communicator"},
		}, func() *evidence.Snapshot { return outOfStep(1).done() }},
		{"rank-mismatch-sends-later", want{
			Says:    "The same, but each has a thread that sleeps for a time and may send then",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"rank-mismatch"},
		}, func() *evidence.Snapshot { return outOfStep(2).done() }},
		{"waiting-for-peer", want{
			Says:    "TP0 reads from TP1, which reads its part of the model",
			Verdict: rule.Loading, Cause: rule.Starting, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"phase-moves", "waiting-for-peer"}, Near: []rule.ID{"no-movement", "rank-mismatch"},
		}, func() *evidence.Snapshot {
			w := facingWaits()[:1]
			b := sglangServer(2, 2).frames(map[int]moves{9500: {threads: frameOf(w...)}, 9501: {user: 400, anon: 20 << 20}}, 0, 0.1, 1, 2.1)
			return b.waits(w...).whole(map[int]int{9500: 1}).done()
		}},
		{"peer-silent", want{
			Says:    "TP1 has sent its first packet five times to a host that does not answer",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"peer-unreachable"}, Near: []rule.ID{"missing-rank"},
			Sentence: []string{"scheduler TP1 (process 9501) tries to reach 192.0.2.1:29500 and has asked 5 times"},
		}, func() *evidence.Snapshot { return trying(4).done() }},
		{"peer-just-asked", want{
			Says:    "The same with the first attempt just made",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"peer-unreachable"},
		}, func() *evidence.Snapshot { return trying(0).done() }},
		{"peer-refused", want{
			Says:    "MASTER_ADDR is this machine and nobody listens at MASTER_PORT; the log holds the attempts",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"peer-unreachable"}, Near: []rule.ID{"missing-rank"},
			Sentence: []string{"127.0.0.1:29500 (MASTER_ADDR and MASTER_PORT)", "nobody listens there"},
		}, func() *evidence.Snapshot {
			return meeting(sglangServer(2, 2).frames(nil, window...).sglangLog(53, 60), false).done()
		}},
		{"peer-served", want{
			Says:    "The same attempts, and by now somebody listens",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"peer-unreachable"},
		}, func() *evidence.Snapshot {
			return meeting(sglangServer(2, 2).frames(nil, window...).sglangLog(53, 60), true).done()
		}},
		{"no-placement", want{
			Says:    "vLLM on Ray waits for its placement group, with a growing number of seconds",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"peer-unreachable"}, Near: []rule.ID{"missing-rank", "missing-head"},
			Sentence: []string{"Ray to place its workers, for 320 s", "another job holds them"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/smollm2-135m", "--port", "8000", "-tp", "16", "--distributed-executor-backend", "ray")
			b.frames(nil, window...).log("vllm-0.32-cpu-first-start", 13, 10)
			line := func(n int64, s string) evidence.Hit {
				return evidence.Hit{Line: n, Text: "INFO 04-20 10:00:00 [ray_utils.py:233] Waiting for creating a placement group of specs for " + s + " seconds. specs=[{'GPU': 1.0}].", Values: map[string]string{"seconds": s}}
			}
			last := line(30, "320")
			b.s.Logs[0].Marks = append(b.s.Logs[0].Marks, evidence.Mark{Signature: "common.any.placement", Engine: "common", Kind: evidence.KindHeartbeat, Count: 6, First: line(20, "10"), Last: &last})
			return b.done()
		}},
		{"waits-for-a-rank-at-rest", want{
			Says:    "TP0 reads from TP1, which does nothing either and waits for a timer: nobody moves",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"waiting-for-peer", "rank-mismatch"},
		}, func() *evidence.Snapshot {
			w := facingWaits()[:1]
			later := in(nil, 9501, "main", "S", "230 0x1 0x1 0x7ffc 0x0 0x0 0x0 0x7ffc 0x7f10", "hrtimer_nanosleep")
			b := sglangServer(2, 2).frames(map[int]moves{9500: {threads: frameOf(w...)}, 9501: {threads: later}}, window...)
			return b.waits(w...).whole(map[int]int{9500: 1}).done()
		}},
	}
}

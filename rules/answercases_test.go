package rules_test

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// upServer is a llama.cpp server that listens and says it is ready.
func upServer(m moves) *snap {
	b := aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf", "--port", "8081")
	m.threads = in(sleepers(4243, 13, "llama-server"), 4242, "llama-server", "S", "288 0x5 0x0 0x0 0x80000 0x0 0x0 0x7f 0x7f", "inet_csk_accept")
	return b.frames(map[int]moves{4242: m}, 0, 0.11).listens(4242, 8081, 0).log("llamacpp-2026-10-start-and-two-requests", 10, 4)
}

// askedFor adds the looks taken while a request was in flight.
func (b *snap) askedFor(m moves, seconds ...float64) *snap {
	before := len(b.s.Frames)
	b.frames(map[int]moves{4242: m}, seconds...)
	for i := before; i < len(b.s.Frames); i++ {
		b.s.Frames[i].During = "check"
		b.s.Frames[i].At = then.Add(time.Duration(i) * time.Second)
	}
	return b
}

func unresponsiveCases() []builtCase {
	stalled := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, HTTPStatus: 200, ErrorType: "stall", Error: "no token for 10 s", Content: "The", Chunks: 1, HeadersMS: 3, TTFTMS: 50}
	return []builtCase{
		{"no-answer", want{
			Says:    "The stream stops after one token and nothing in the server moves: up but dead",
			Verdict: rule.Unresponsive, Cause: rule.NoAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"no-answer"}, Near: []rule.ID{"answers", "wrong-answer", "garbage-answer", "ready-by-its-word"},
			Sentence: []string{"stalled after 1 token"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).askedFor(moves{}, 1, 2, 11).checked(evidence.CheckError, "the stream stalled after 1 token for 10 s", stalled).done()
		}},
		{"no-answer-while-busy", want{
			Says:    "The same, but the process computes: a long prefill is mute as well, so nothing is decided",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"no-answer"}, Sentence: []string{"A long prefill or a full batch is mute as well"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).askedFor(moves{user: 900, anon: 4 << 20}, 1, 60, 120).checked(evidence.CheckError, "no token within 120 s", stalled).done()
		}},
		{"wrong-answer", want{
			Says:    "Fluent and wrong, twice",
			Verdict: rule.Unresponsive, Cause: rule.WrongAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"wrong-answer"}, Near: []rule.ID{"answers", "garbage-answer", "no-answer"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).checked(evidence.CheckWrong, `it answered "Five" and "The answer is five."`, answered("Five"), answered("The answer is five.")).done()
		}},
		{"garbage-answer", want{
			Says:    "Nothing but exclamation marks",
			Verdict: rule.Unresponsive, Cause: rule.GarbageAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"garbage-answer"}, Near: []rule.ID{"answers", "wrong-answer", "no-answer"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).checked(evidence.CheckGarbage, `it answered "!!!!!!!!"`, answered("!!!!!!!!")).done()
		}},
		{"wrong-owner", want{
			Says:    "The port of the command line belongs to what was left of the last server",
			Verdict: rule.Unresponsive, Cause: rule.WrongOwner, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"wrong-owner", "no-movement"}, Near: []rule.ID{"port-shared"}, Sentence: []string{"process 999 (llama-server)"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf", "--port", "8081").frames(nil, 0, 0.11, 5, 10)
			b.listens(999, 8081, 0)
			b.s.Sockets.Listeners[0].Owner, b.s.Sockets.Listeners[0].PIDName = evidence.OwnerOther, "llama-server"
			return b.done()
		}},
		{"port-shared", want{
			Says:    "Two servers share the port with SO_REUSEPORT, and one of the sockets is this server's",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "port-shared"}, Near: []rule.ID{"wrong-owner"}, Warnings: []string{"shared port"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{}).listens(999, 8081, 0)
			b.s.Sockets.Listeners[1].Owner, b.s.Sockets.Listeners[1].PIDName = evidence.OwnerOther, "llama-server"
			return b.checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
	}
}

func readyCases() []builtCase {
	return []builtCase{
		{"ready-idle", want{
			Says:    "A healthy idle server, which shows the same threads as a deadlocked one",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers"}, Near: []rule.ID{"no-answer", "distorting-flag", "driver-silent", "lock-cycle"},
			Sentence: []string{"13 threads wait for work, one waits for connections"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
		{"ready-busy", want{
			Says:    "Other requests are under way",
			Verdict: rule.Ready, Cause: rule.Busy, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers"}, Near: []rule.ID{"no-answer"},
			Sentence: []string{"3 other connections"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{user: 900}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
			b.s.Frames[1].Sockets.Inbound = 3
			return b.done()
		}},
		{"ready-ranks-connected", want{
			Says:    "A spinning engine whose ranks hold connections to each other, and nobody at its door",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers"}, Near: []rule.ID{"no-answer"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{user: 900}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
			b.s.Frames[1].Sockets.Inbound, b.s.Frames[1].Sockets.InboundBy = 8, map[string]int{}
			return b.done()
		}},
		{"ready-driver-silent", want{
			Says:    "It answers, and the GPU driver did not answer whyhang: ready, with a warning",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "driver-silent"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
			b.s.GPU = &evidence.GPU{Child: &evidence.StuckChild{PID: 5000, State: "S", Wchan: "do_pause", Stage: "nvmlInit_v2"}}
			return b.probe(evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.Timeout, TookMS: 5000, Detail: "the NVIDIA driver does not answer: nvmlInit_v2 did not return within 5s"}).done()
		}},
		{"ready-strict", want{
			Says:    "Ready, with eager mode left on and --strict: its numbers would mislead",
			Verdict: rule.Ready, Cause: rule.Distorted, Strength: rule.Proved, ExitCode: 10,
			Findings: []rule.ID{"answers", "distorting-flag"}, Sentence: []string{"--enforce-eager"},
		}, func() *evidence.Snapshot {
			b := vllmServer()
			b.s.Processes[0].Argv = append(b.s.Processes[0].Argv, "--enforce-eager")
			b.s.Asked.Strict = true
			return b.frames(nil, 0, 0.1).listens(9414, 8000, 0).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
	}
}

func goneCases() []builtCase {
	return []builtCase{
		{"gone", want{
			Says:    "No such process",
			Verdict: rule.Gone, Cause: rule.NoProcess, Strength: rule.Proved, ExitCode: 8,
			Findings: []rule.ID{"gone"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "x")
			b.s.Processes, b.s.Target.State = nil, evidence.TargetAbsent
			return b.done()
		}},
		{"gone-zombie", want{
			Says:    "A zombie with its exit status",
			Verdict: rule.Gone, Cause: rule.Exited, Strength: rule.Proved, ExitCode: 8,
			Findings: []rule.ID{"gone"}, Sentence: []string{"exited with code 1", "process 1 (tini)"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "x")
			b.s.Processes = nil
			b.s.Target = evidence.Target{PID: 4242, State: evidence.TargetZombie, WaitStatus: ptr(256), ParentPID: 1, ParentName: "tini"}
			return b.done()
		}},
		{"gone-with-a-log", want{
			Says:    "It ended while whyhang looked, nobody knows how: its log is the place to look, and the kernel's",
			Verdict: rule.Gone, Cause: rule.Exited, Strength: rule.Proved, ExitCode: 8,
			Findings: []rule.ID{"gone"},
		}, func() *evidence.Snapshot {
			b := vllmServer().log("vllm-0.32-cpu-first-start", 60, 1)
			b.s.Logs[0].Path = "/var/log/the server's log"
			b.s.Target.State = evidence.TargetExited
			return b.done()
		}},
	}
}

func unknownCases() []builtCase {
	denied := func(b *snap) *snap {
		for _, file := range []string{"/task/*/syscall", "/fd", "/maps", "/io"} {
			b.s.Processes[0].Unread = append(b.s.Processes[0].Unread, evidence.Unread{What: "/proc/4242" + file, Status: evidence.Denied, Why: "permission denied", Hint: "sudo whyhang 4242"})
		}
		b.s.Sockets.OwnersKnown = false
		b.s.Host.UID = 1000
		return b
	}
	return []builtCase{
		{"no-permission", want{
			Says:    "Somebody else's process: nothing seen of it may pass as health, or as a stall",
			Verdict: rule.Unknown, Cause: rule.NoPermission, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"no-movement", "ready-by-its-word"}, Sentence: []string{"/proc/4242/task/*/syscall (permission denied)"},
		}, func() *evidence.Snapshot {
			return denied(aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf")).frames(nil, 0, 0.1, 5, 10.2).done()
		}},
		{"not-asked", want{
			Says:    "Looks up, and --passive forbade asking; it has no log to vouch for it",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"ready-by-its-word", "no-movement", "phase-moves"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "./http").frames(map[int]moves{4242: {threads: sleepers(4242, 131, "http")}}, 0, 0.1, 5, 10.2).listens(4242, 8080, 0)
			b.s.Asked.Passive = true
			return b.done()
		}},
	}
}

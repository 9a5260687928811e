package rules_test

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// inUse adds the line of uvicorn that says that a port is taken.
func (b *snap) inUse(line int64, port int) *snap {
	l := &b.s.Logs[0]
	l.Marks = append(l.Marks, evidence.Mark{Signature: "common.any.address-in-use", Engine: "common", Kind: evidence.KindFatal, Count: 1,
		First: evidence.Hit{Line: line, Text: fmt.Sprintf("[Errno 98] error while attempting to bind on address ('127.0.0.1', %d): address already in use", port),
			Values: map[string]string{"port": fmt.Sprint(port)}}})
	return b
}

// held adds a listener of somebody else.
func (b *snap) held(address string, port int) *snap {
	b.listens(999, port, 0)
	l := &b.s.Sockets.Listeners[len(b.s.Sockets.Listeners)-1]
	l.Owner, l.PIDName, l.Address, l.Inode = evidence.OwnerOther, "llama-server", fmt.Sprintf("%s:%d", address, port), 7999
	return b
}

// queues sets the accept queue of the listener on a port, look by look.
func (b *snap) queues(port int, lengths ...int) *snap {
	for i := range b.s.Frames {
		b.s.Frames[i].Sockets = &evidence.SocketFrame{AcceptQueues: map[string]int{fmt.Sprint(7000 + port): lengths[min(i, len(lengths)-1)]}}
	}
	return b
}

// ownWaits leaves whyhang's own connection unaccepted in every look of the check.
func (b *snap) ownWaits(port int) *snap {
	for i := range b.s.Frames {
		if f := &b.s.Frames[i]; f.During == "check" {
			f.Sockets = &evidence.SocketFrame{AcceptQueues: map[string]int{fmt.Sprint(7000 + port): 0}, OwnWaiting: map[string]int{fmt.Sprint(7000 + port): 1}}
		}
	}
	return b
}

func acceptCases() []builtCase {
	noHeaders := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, ErrorType: "headers_timeout", Error: "no headers within 10 s"}
	passive := func(lengths ...int) *snap {
		b := aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf", "--port", "8081").frames(nil, 0, 0.11, 1, 3, 6).listens(4242, 8081, 0).queues(8081, lengths...)
		b.s.Asked.Passive = true
		return b
	}
	return []builtCase{
		{"accept-stuck", want{
			Says:    "The port is open, and nobody behind it takes the connection",
			Verdict: rule.Unresponsive, Cause: rule.AcceptStuck, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"accept-stuck"}, Near: []rule.ID{"answers", "port-shared"},
			Sentence: []string{"accepts nobody", "still waiting to be accepted"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).askedFor(moves{}, 1, 2, 11).ownWaits(8081).checked(evidence.CheckError, "no headers within 10 s", noHeaders).done()
		}},
		{"accept-stuck-in-prefill", want{
			Says:    "The same, but the process computes: a server with a single loop accepts nobody meanwhile",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"accept-stuck"}, Sentence: []string{"A server with a single loop"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).askedFor(moves{user: 900, anon: 4 << 20}, 1, 60, 120).ownWaits(8081).checked(evidence.CheckError, "no headers within 120 s", noHeaders).done()
		}},
		{"accepted-and-mute", want{
			Says:    "The connection was accepted, and no answer came: it stopped further in",
			Verdict: rule.Unresponsive, Cause: rule.NoAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"no-answer"}, Near: []rule.ID{"accept-stuck"},
		}, func() *evidence.Snapshot {
			return upServer(moves{}).askedFor(moves{}, 1, 2, 11).queues(8081, 0).checked(evidence.CheckError, "no headers within 10 s", noHeaders).done()
		}},
		{"accept-stuck-passive", want{
			Says:    "Three clients have waited for the whole window: likely without a question",
			Verdict: rule.Unresponsive, Cause: rule.AcceptStuck, Strength: rule.Likely, ExitCode: 6,
			Findings: []rule.ID{"accept-stuck"}, Sentence: []string{"3 connections have waited there for 6 s"},
		}, func() *evidence.Snapshot { return passive(3).done() }},
		{"accept-queue-moves", want{
			Says:    "Clients wait, and their number falls now and then: it accepts",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"accept-stuck"},
		}, func() *evidence.Snapshot { return passive(3, 2, 3, 4).done() }},
	}
}

func doorCases() []builtCase {
	loaded := func() *snap { return vllmServer().frames(nil, window...).log("vllm-0.32-cpu-first-start", 60, 60) }
	return []builtCase{
		{"port-taken", want{
			Says:    "The load was in vain: the port is held by what was left of the last server",
			Verdict: rule.Broken, Cause: rule.PortTaken, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"port-taken"}, Near: []rule.ID{"ready-by-its-word"},
			Sentence: []string{"port 8000 is in use by process 999 (llama-server)", "line 60"},
		}, func() *evidence.Snapshot { return loaded().inUse(60, 8000).held("127.0.0.1", 8000).done() }},
		{"port-taken-answered-by-the-other", want{
			Says:    "The warm-up request went to whoever holds the port, and got an answer: a ready line that is a lie",
			Verdict: rule.Broken, Cause: rule.PortTaken, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"port-taken"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(nil, window...).log("vllm-0.32-cpu-first-start", 101, 60).inUse(90, 8000).held("0.0.0.0", 8000).done()
		}},
		{"port-taken-by-nobody-now", want{
			Says:    "Nobody holds the port any more",
			Verdict: rule.Broken, Cause: rule.PortTaken, Strength: rule.Likely, ExitCode: 7,
			Findings: []rule.ID{"port-taken"}, Sentence: []string{"address already in use"},
		}, func() *evidence.Snapshot { return loaded().inUse(60, 8000).done() }},
		{"port-taken-another", want{
			Says:    "The line is about the port of a store, for which the next one was taken",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"port-taken"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, window...).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60).inUse(40, 29500)
			b.s.Asked.Passive = true
			return b.done()
		}},
		{"other-address", want{
			Says:    "Another server has the same port on another address of the machine",
			Verdict: rule.Unknown, Cause: rule.TooShort, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"wrong-owner"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf", "--host", "127.0.0.1", "--port", "8081").frames(nil, 0, 0.11, 1)
			return b.held("10.0.0.7", 8081).done()
		}},
		{"loading-with-its-port-held", want{
			Says:    "It still loads, and will find its port taken: said before the time is lost",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read", "wrong-owner"}, Near: []rule.ID{"port-taken"},
		}, func() *evidence.Snapshot {
			path := "/models/smollm2-135m/model.safetensors"
			return vllmServer().weights(path, 1<<33).frames(map[int]moves{10100: {read: 300 << 20, path: path, from: 1 << 20, position: 300 << 20, system: 20}}, window...).held("0.0.0.0", 8000).log("vllm-0.32-cpu-first-start", 37, 6).done()
		}},
	}
}

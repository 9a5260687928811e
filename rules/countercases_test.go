package rules_test

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// counted adds a reading of vLLM's counters.
func (b *snap) counted(during string, seconds, running, waiting, tokens float64) *snap {
	b.s.Counters = append(b.s.Counters, evidence.CounterLook{SinceMS: seconds * 1000, During: during, Endpoint: "/metrics", Engine: "vllm",
		Running: &running, Waiting: &waiting, GeneratedTokens: &tokens, Steps: &tokens, PromptTokens: ptr(58.0), CacheUsage: ptr(0.1)})
	return b
}

func counterCases() []builtCase {
	mute := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, ErrorType: "headers_timeout", Error: "no headers within 10 s"}
	unanswered := func(m moves) *snap {
		return upServer(moves{}).askedFor(m, 1, 2, 11).queues(8081, 0).checked(evidence.CheckError, "no headers within 10 s", mute)
	}
	turnedAway := func() *snap {
		e := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, HTTPStatus: 429, ErrorType: "http_4xx", Error: `it answers HTTP 429, "Model is overloaded"`}
		return upServer(moves{}).askedFor(moves{}, 1, 2, 11).queues(8081, 0).checked(evidence.CheckBusy, `it answers HTTP 429, "Model is overloaded"`, e)
	}
	answers := func() *snap {
		return upServer(moves{}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
	}
	return []builtCase{
		{"engine-stuck", want{
			Says:    "Two requests run and no token is made: the engine is stuck, its front end is not",
			Verdict: rule.Unresponsive, Cause: rule.EngineStuck, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"engine-stuck", "other-traffic"}, Near: []rule.ID{"accept-stuck", "answers"},
			Sentence: []string{"3 requests run", "for 11 s it has not made a token"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}).counted("", 0.3, 2, 0, 149).counted("check", 3.5, 3, 0, 149).counted("check", 11.2, 3, 0, 149).done()
		}},
		{"engine-stuck-reads-zero", want{
			Says:    "The twin that counters hide: real vLLM and SGLang with a frozen worker say that nothing runs; nothing of health follows",
			Verdict: rule.Unresponsive, Cause: rule.NoAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"no-answer"}, Near: []rule.ID{"engine-stuck", "other-traffic"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}).counted("", 0.3, 0, 0, 149).counted("check", 3.5, 0, 0, 149).counted("check", 11.2, 0, 0, 149).done()
		}},
		{"engine-in-prefill", want{
			Says:    "The same counters while the process computes: a long prefill is counted when it is over",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"other-traffic", "engine-stuck"}, Sentence: []string{"counted when it is over"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{user: 900, anon: 4 << 20}).counted("", 0.3, 1, 0, 149).counted("check", 3.5, 1, 1, 149).counted("check", 11.2, 1, 1, 149).done()
		}},
		{"busy-queue", want{
			Says:    "No answer in time, and the tokens of others move: busy, not dead",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"other-traffic", "no-answer"}, Near: []rule.ID{"engine-stuck"}, Sentence: []string{"It is busy and has not answered yet"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}).counted("", 0.3, 8, 30, 149).counted("check", 3.5, 8, 31, 400).counted("check", 11.2, 8, 31, 1200).done()
		}},
		{"busy-turned-away", want{
			Says:    "It turns the question away and makes tokens for others: ready, by its counters",
			Verdict: rule.Ready, Cause: rule.Busy, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-counters", "other-traffic"}, Near: []rule.ID{"engine-stuck"}, Sentence: []string{"up and busy", "HTTP 429"},
		}, func() *evidence.Snapshot {
			return turnedAway().counted("", 0.3, 8, 0, 149).counted("check", 3.5, 8, 0, 400).counted("check", 6.5, 8, 0, 700).done()
		}},
		{"busy-turned-away-stuck", want{
			Says:    "The twin: it turns the question away and its engine makes nothing",
			Verdict: rule.Unresponsive, Cause: rule.EngineStuck, Strength: rule.Likely, ExitCode: 6,
			Findings: []rule.ID{"engine-stuck", "other-traffic"}, Near: []rule.ID{"ready-by-counters"},
		}, func() *evidence.Snapshot {
			return turnedAway().counted("", 0.3, 8, 0, 149).counted("check", 3.5, 8, 0, 149).counted("check", 6.5, 8, 0, 149).done()
		}},
		{"busy-turned-away-zero", want{
			Says:    "The twin that counters hide: it turns the question away and counts nothing, which proves nothing",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"engine-stuck", "ready-by-counters"}, Sentence: []string{"turns requests away"},
		}, func() *evidence.Snapshot {
			return turnedAway().counted("", 0.3, 0, 0, 149).counted("check", 0.5, 0, 0, 149).done()
		}},
		{"engine-stuck-not-asked", want{
			Says:    "Not asked, only counted twice: likely",
			Verdict: rule.Unresponsive, Cause: rule.EngineStuck, Strength: rule.Likely, ExitCode: 6,
			Findings: []rule.ID{"engine-stuck", "other-traffic"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{}).counted("", 0.3, 2, 0, 149).counted("", 6.4, 2, 0, 149)
			b.s.Asked.NoCheck = true
			return b.done()
		}},
		{"ready-beside-others", want{
			Says:    "It answers, and ran three requests before it was asked",
			Verdict: rule.Ready, Cause: rule.Busy, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "other-traffic"}, Near: []rule.ID{"engine-stuck"},
			Sentence: []string{"while it has 3 other requests"}, Warnings: []string{"other traffic"},
		}, func() *evidence.Snapshot {
			return answers().counted("", 0.3, 3, 0, 149).counted("check", 0.9, 3, 0, 149).done()
		}},
		{"ready-counters-behind", want{
			Says:    "SGLang's counters are some steps behind: 0 before the question, 6 after its answer",
			Verdict: rule.Ready, Cause: rule.Busy, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "other-traffic"}, Sentence: []string{"while it has 5 other requests"},
		}, func() *evidence.Snapshot {
			return answers().counted("", 0.5, 0, 0, 50).counted("check", 15.6, 6, 0, 71).done()
		}},
		{"engine-counts-at-the-end", want{
			Says:    "Six long answers under way in an engine that counts tokens when a request is over: nothing follows from a counter that stands",
			Verdict: rule.Unknown, Cause: rule.NotAsked, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"other-traffic"}, Near: []rule.ID{"engine-stuck"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{}).counted("", 0.3, 6, 0, 149).counted("", 6.4, 6, 0, 149)
			for i := range b.s.Counters {
				b.s.Counters[i].Steps = nil
			}
			b.s.Asked.NoCheck, b.s.Logs = true, nil
			return b.done()
		}},
		{"ready-by-counters-idle", want{
			Says:    "Clients keep connections open, and nothing runs",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers"}, Near: []rule.ID{"engine-stuck", "other-traffic"},
		}, func() *evidence.Snapshot {
			b := upServer(moves{user: 900}).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
			b.s.Frames[1].Sockets.Inbound = 3
			return b.counted("", 0.3, 0, 0, 149).counted("check", 0.9, 0, 0, 157).done()
		}},
	}
}

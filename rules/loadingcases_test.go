package rules_test

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

func loadingCases() []builtCase {
	weights := "/models/big/model.safetensors"
	return []builtCase{
		{"weights-mapped-unknown-engine", want{
			Says:    "A process nobody knows reads a weight file: loading, whatever it is",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"weights-convert", "no-movement"},
			Sentence: []string{"of 2.0 GiB"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "./loader").weights(weights, 2<<30)
			return b.frames(map[int]moves{4242: {system: 40, read: 50 << 20, path: weights, from: 100 << 20, position: 50 << 20}}, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2).done()
		}},
		{"weights-convert-spin", want{
			Says:    "The weights are in, one thread computes in user code and no memory grows: likely conversion, as its log ended there",
			Verdict: rule.Loading, Cause: rule.WeightsConvert, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"weights-convert"}, Near: []rule.ID{"weights-read", "no-movement"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: {user: 980}}, 0, 0.1, 1, 5, 10).log("vllm-0.32-cpu-first-start", 42, 30).done()
		}},
		{"spin-without-weights", want{
			Says:    "The same processor time in a process that has no weights, no log and no listener: no server",
			Verdict: rule.Unknown, Cause: rule.NotAServer, Strength: rule.Open, ExitCode: 9,
			Near: []rule.ID{"weights-convert", "phase-moves"},
		}, func() *evidence.Snapshot {
			return aServer(4242, "./spin").frames(map[int]moves{4242: {user: 990}}, 0, 0.1, 1, 5, 10).done()
		}},
		{"graph-compile", want{
			Says:    "vLLM's first start: 133 silent seconds of torch.compile, faults and memory grow",
			Verdict: rule.Loading, Cause: rule.GraphCompile, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"graph-compile"}, Near: []rule.ID{"weights-convert", "no-movement", "lock-cycle"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: {user: 930, system: 40, faults: 3000, anon: 2 << 20}}, 0, 0.1, 1, 2.1).log("vllm-0.32-cpu-first-start", 47, 60).done()
		}},
		{"graph-compile-warm-up-run", want{
			Says:    "The 45 s of the same start that look like an endless loop: user time 98 %, no faults, no memory, no line",
			Verdict: rule.Loading, Cause: rule.GraphCompile, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"graph-compile"}, Near: []rule.ID{"no-movement", "weights-convert"},
			Sentence: []string{"may be silent"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: {user: 980}}, 0, 0.1, 1, 5, 10).log("vllm-0.32-cpu-first-start", 48, 45).done()
		}},
		{"graph-compile-for-too-long", want{
			Says:    "The same picture an hour later: longer than the phase may be silent, so nothing tells it from an endless loop",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"graph-compile"}, Near: []rule.ID{"no-movement", "lock-cycle"},
			Sentence: []string{"a thread that spins for ever looks the same"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: {user: 980}}, 0, 0.1, 1, 5, 10).log("vllm-0.32-cpu-first-start", 48, 3600).done()
		}},
		{"graph-compile-over", want{
			Says:    "The same processor time after the ready line: a busy poll, no compilation",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"graph-compile", "weights-convert", "phase-moves"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{10239: {user: 980}}, 0, 0.1, 1, 5, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 45)
			b.s.Asked.Passive = true
			return b.done()
		}},
		{"kernel-build", want{
			Says:    "A rank builds kernels: nvcc and cicc work, the server's own threads sleep",
			Verdict: rule.Loading, Cause: rule.KernelBuild, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"kernel-build"}, Near: []rule.ID{"no-movement", "graph-compile"},
			Sentence: []string{"cicc"},
		}, func() *evidence.Snapshot {
			b := vllmServer().process(20000, 10239, "nvcc", "-c", "moe.cu").process(20001, 20000, "cicc", "--arch", "compute_120")
			return b.frames(map[int]moves{20001: {user: 990, faults: 5000, anon: 10 << 20}}, 0, 0.1, 1, 2.1).log("vllm-0.32-cpu-first-start", 42, 45).done()
		}},
		{"graph-compile-by-its-compiler", want{
			Says:    "The log is not at the compilation, but cc1plus translates what inductor wrote: SGLang's warm-up on a CPU",
			Verdict: rule.Loading, Cause: rule.GraphCompile, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"graph-compile"}, Near: []rule.ID{"kernel-build"},
		}, func() *evidence.Snapshot {
			b := vllmServer().process(20000, 10239, "g++", "/cache/inductor/yx/cyx.cpp", "-D", "TORCH_INDUCTOR_CPP_WRAPPER").process(20001, 20000, "cc1plus", "-D", "TORCH_INDUCTOR_CPP_WRAPPER")
			return b.frames(map[int]moves{20001: {user: 940, faults: 5000, anon: 10 << 20}}, 0, 0.1, 1, 2.1).log("vllm-0.32-cpu-first-start", 42, 45).done()
		}},
		{"idle-compile-workers", want{
			Says:    "Inductor workers that live as long as the server are no compilers",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"kernel-build"},
		}, func() *evidence.Snapshot {
			b := vllmServer().process(20000, 10239, "python3", "/opt/torch/_inductor/compile_worker/__main__.py", "--pickle=x", "--kind=fork", "--workers=8")
			b.s.Asked.Passive = true
			return b.frames(nil, 0, 0.1, 1, 5, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 45).done()
		}},
		{"communicator", want{
			Says:    "Ranks set up their communicators and memory grows",
			Verdict: rule.Loading, Cause: rule.CommunicatorUp, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"no-movement", "weights-read"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: {user: 300, anon: 30 << 20}}, 0, 0.1, 1, 2.1).log("vllm-0.32-cpu-first-start", 32, 2).done()
		}},
		{"says-loading", want{
			Says:    "llama.cpp answers 503 \"Loading model\" while its thread works",
			Verdict: rule.Loading, Cause: rule.Starting, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"says-loading"}, Near: []rule.ID{"no-answer"},
			Sentence: []string{"HTTP 503"},
		}, func() *evidence.Snapshot {
			b := aServer(4242, "/usr/bin/llama-server", "-m", "/models/x.gguf").frames(map[int]moves{4242: {user: 500, anon: 1 << 20}}, 0, 0.1, 1).listens(4242, 8080, 0)
			e := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, HTTPStatus: 503, ErrorType: "http_5xx", Error: "Loading model"}
			return b.checked(evidence.CheckLoading, "it says itself that it is still loading", e).done()
		}},
	}
}

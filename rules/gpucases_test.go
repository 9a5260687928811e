package rules_test

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// onGPU are the figures of one GPU over a whole window.
type onGPU struct {
	util, memory int
	watts        float64
	used         uint64
	tree         bool
}

// onGPUs puts GPUs with a limit of 700 W into every frame.
func (b *snap) onGPUs(gpus ...onGPU) *snap {
	b.s.GPU = &evidence.GPU{Driver: "580.95.05", Library: "NVML"}
	for i := range b.s.Probes {
		if b.s.Probes[i].Name == evidence.ProbeGPU {
			b.s.Probes[i] = evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.OK, TookMS: 20}
		}
	}
	for i, g := range gpus {
		b.s.GPU.Devices = append(b.s.GPU.Devices, evidence.GPUDevice{Index: i, UUID: fmt.Sprintf("GPU-0000000%d", i), Name: "NVIDIA H200",
			BusID: fmt.Sprintf("00000000:%02x:00.0", 16*(i+1)), MemoryTotalBytes: ptr(uint64(141 << 30)), PowerLimitW: ptr(700.0)})
		for n := range b.s.Frames {
			f := evidence.GPUFrame{Index: i, MemoryUsedBytes: &g.used, UtilPercent: &g.util, MemoryUtilPercent: &g.memory, PowerW: &g.watts}
			if g.tree {
				f.Processes = []evidence.GPUProcess{{PID: b.s.Target.PID, InTree: true}}
			}
			b.s.Frames[n].GPUs = append(b.s.Frames[n].GPUs, f)
		}
	}
	return b
}

// What GPUs show beside the processes: the pair of utilisation and power tells,
// one of them alone does not.
func gpuCases() []builtCase {
	yields := moves{user: 380, system: 610}
	spins := onGPU{util: 100, memory: 0, watts: 130, used: 470 << 20, tree: true}
	stalled := evidence.Exchange{Prompt: "What is 2+2? Reply in one word.", MaxTokens: 32, HTTPStatus: 200, ErrorType: "timeout", Error: "no token within 120 s", Chunks: 0, HeadersMS: 3}
	inCommunicator := func(quiet float64, gpus ...onGPU) *evidence.Snapshot {
		return vllmServer().frames(map[int]moves{10239: yields}, 0, 0.1, 1, 5, 10).log("vllm-0.32-cpu-first-start", 32, quiet).onGPUs(gpus...).done()
	}
	unanswered := func(m moves, gpus ...onGPU) *evidence.Snapshot {
		return upServer(moves{}).askedFor(m, 1, 60, 120).onGPUs(gpus...).checked(evidence.CheckError, "no token within 120 s", stalled).done()
	}
	return []builtCase{
		{"communicator-spin", want{
			Says:    "Both GPUs at 100 % and idle power, 470 MiB used, yield loops, and the log ends in the communicator set-up, an hour ago",
			Verdict: rule.Deadlocked, Cause: rule.CommunicatorSpin, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"communicator-spin"}, Near: []rule.ID{"phase-moves", "no-movement", "lock-cycle"},
			Sentence: []string{"2 of them spin"},
		}, func() *evidence.Snapshot { return inCommunicator(3600, spins, spins) }},
		{"communicator-spin-for-a-moment", want{
			Says:    "The same picture after a minute: a set-up may take that long",
			Verdict: rule.Loading, Cause: rule.CommunicatorUp, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"communicator-spin"},
		}, func() *evidence.Snapshot { return inCommunicator(60, spins, spins) }},
		{"communicator-spin-without-gpus", want{
			Says:    "The same yield loops an hour after the last line, and no GPU can be read: nothing tells a spin from work",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"communicator-spin", "no-movement"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(map[int]moves{10239: yields}, 0, 0.1, 1, 5, 10).log("vllm-0.32-cpu-first-start", 32, 3600).done()
		}},
		{"communicator-at-work", want{
			Says:    "100 % at 80 % of the power limit is work, however long the log is silent",
			Verdict: rule.Loading, Cause: rule.CommunicatorUp, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"phase-moves"}, Near: []rule.ID{"communicator-spin", "no-movement"}, Sentence: []string{"at 80 % of its power limit"},
		}, func() *evidence.Snapshot {
			return inCommunicator(3600, onGPU{util: 100, memory: 40, watts: 560, used: 470 << 20, tree: true})
		}},
		{"idle-spin-on-gpu", want{
			Says:    "Ready, nothing asked of it: a rank yields and the GPU shows 100 % at idle power, as engines do that poll",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"communicator-spin", "gpu-kernel-stuck"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{10239: yields}, 0, 0.1, 1, 5, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 45)
			b.s.Asked.Passive = true
			return b.onGPUs(onGPU{util: 100, memory: 0, watts: 120, used: 120 << 30, tree: true}).done()
		}},
		{"gpu-kernel-stuck", want{
			Says:    "No token comes, and the GPU is 96 % busy at 20 W with no memory traffic",
			Verdict: rule.Unresponsive, Cause: rule.GPUKernelStuck, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"gpu-kernel-stuck"}, Near: []rule.ID{"no-answer", "answers"},
			Sentence: []string{"spins on GPU 0"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}, onGPU{util: 96, memory: 0, watts: 20, used: 60 << 30, tree: true}, onGPU{util: 0, watts: 15})
		}},
		{"gpu-busy-with-a-prefill", want{
			Says:    "No token comes either, but the GPU draws 85 % of its power: a long prefill, nothing decided",
			Verdict: rule.Unknown, Cause: rule.Conflicting, Strength: rule.Open, ExitCode: 9,
			Findings: []rule.ID{"no-answer"}, Near: []rule.ID{"gpu-kernel-stuck"}, Sentence: []string{"at 85 % of its power limit"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}, onGPU{util: 100, memory: 40, watts: 595, used: 60 << 30, tree: true})
		}},
		{"gpu-spin-of-a-neighbour", want{
			Says:    "The GPU that spins belongs to another server",
			Verdict: rule.Unresponsive, Cause: rule.NoAnswer, Strength: rule.Strong, ExitCode: 6,
			Findings: []rule.ID{"no-answer"}, Near: []rule.ID{"gpu-kernel-stuck"},
		}, func() *evidence.Snapshot {
			return unanswered(moves{}, onGPU{util: 0, memory: 0, watts: 70, used: 60 << 30, tree: true}, onGPU{util: 100, memory: 0, watts: 130, used: 60 << 30})
		}},
	}
}

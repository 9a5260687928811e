package rules_test

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// strictServer is a vLLM server that answers, asked with --strict, with these
// options beside its own.
func strictServer(change func(s *evidence.Snapshot), flags ...string) *evidence.Snapshot {
	b := vllmServer()
	b.s.Processes[0].Argv = append(b.s.Processes[0].Argv, flags...)
	b.s.Asked.Strict = true
	b = b.frames(nil, 0, 0.1).listens(9414, 8000, 0).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4"))
	if change != nil {
		change(b.s)
	}
	return b.done()
}

// misleads is what a case with one distortion wants; sound one without.
func misleads(says string, finding rule.ID, sentence string) want {
	return want{Says: says, Verdict: rule.Ready, Cause: rule.Distorted, Strength: rule.Proved, ExitCode: 10,
		Findings: []rule.ID{"answers", finding}, Sentence: []string{sentence}}
}

func sound(says string, near ...rule.ID) want {
	return want{Says: says, Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0, Findings: []rule.ID{"answers"}, Near: near}
}

func distortCases() []builtCase {
	clock := func(k evidence.CPUClock) func(*evidence.Snapshot) {
		return func(s *evidence.Snapshot) { s.Kernel = &evidence.Kernel{CPUClocks: []evidence.CPUClock{k}} }
	}
	reasons := func(bits uint64) func(*evidence.Snapshot) {
		return func(s *evidence.Snapshot) {
			s.GPU = &evidence.GPU{Driver: "595.45.04", Library: "NVML", Devices: []evidence.GPUDevice{{Index: 0}, {Index: 1}}}
			last := &s.Frames[len(s.Frames)-1]
			idle := uint64(1)
			last.GPUs = []evidence.GPUFrame{{Index: 0, ClockReasons: &idle}, {Index: 1, ClockReasons: &bits}}
			s.Probes = append(s.Probes, evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.OK})
		}
	}
	return []builtCase{
		{"strict-nothing", sound("Asked with --strict, and nothing distorts", "distorting-flag", "under-a-tool", "cpu-held-down", "gpu-held-down"),
			func() *evidence.Snapshot { return strictServer(nil) }},
		{"strict-set-for-its-parts", want{
			Says:    "SGLang sets a variable for the schedulers that it starts: nobody left that behind",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers"}, Near: []rule.ID{"distorting-flag"},
		}, func() *evidence.Snapshot {
			return strictServer(func(s *evidence.Snapshot) {
				part := s.Processes[0]
				part.PID, part.PPID, part.Env = s.Processes[0].PID+1, s.Processes[0].PID, map[string]string{"NCCL_NVLS_ENABLE": "0"}
				s.Processes = append(s.Processes, part)
			})
		}},
		{"strict-not-known", want{
			Says:    "What --strict could not look at is listed: other traffic, the clocks",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0, Findings: []rule.ID{"answers"},
			NotKnown: []string{"other-traffic: GET /metrics: HTTP 404", "cpu-held-down: /sys/devices/system/cpu/cpufreq: the kernel does not steer"},
		}, func() *evidence.Snapshot {
			return strictServer(func(s *evidence.Snapshot) {
				s.Kernel = &evidence.Kernel{Unread: []evidence.Unread{{What: "/sys/devices/system/cpu/cpufreq", Status: evidence.Unsupported, Why: "the kernel does not steer the clocks of the processors here"}}}
				s.Probes = append(s.Probes, evidence.ProbeRun{Name: evidence.ProbeCounters, Status: evidence.Unsupported, Detail: "GET /metrics: HTTP 404"})
			})
		}},
		{"strict-traced", misleads("strace is still attached from the hunt for a hang", "under-a-tool", "traced by strace"),
			func() *evidence.Snapshot {
				return strictServer(func(s *evidence.Snapshot) { s.Processes[0].TracerPID, s.Processes[0].TracerName = 77, "strace" })
			}},
		{"strict-profiled", misleads("It was started by nsys", "under-a-tool", "started by nsys"),
			func() *evidence.Snapshot {
				return strictServer(func(s *evidence.Snapshot) {
					s.Target.Ancestors = []evidence.Ancestor{{PID: 70, Name: "bash"}, {PID: 60, Name: "nsys"}}
				})
			}},
		{"strict-sanitized", misleads("AddressSanitizer is loaded into it", "under-a-tool", "AddressSanitizer (libasan.so.8)"),
			func() *evidence.Snapshot {
				return strictServer(func(s *evidence.Snapshot) {
					s.Processes[0].Libraries = append(s.Processes[0].Libraries, "libasan.so.8")
				})
			}},
		{"strict-from-a-shell", sound("Its parents are a shell and a terminal multiplexer", "under-a-tool"),
			func() *evidence.Snapshot {
				return strictServer(func(s *evidence.Snapshot) {
					s.Target.Ancestors = []evidence.Ancestor{{PID: 70, Name: "bash"}, {PID: 60, Name: "tmux: server"}}
				})
			}},
		{"strict-cpu-powersave", misleads("The governor keeps the processors at their lowest clock", "cpu-held-down", "CPU governor"),
			func() *evidence.Snapshot {
				return strictServer(clock(evidence.CPUClock{CPUs: 64, Driver: "acpi-cpufreq", Governor: "powersave", LowestKHz: 1500000, MostKHz: 3700000, HardwareKHz: 3700000}))
			}},
		{"strict-cpu-limited", misleads("The processors' clock is limited to half", "cpu-held-down", "CPU most khz"),
			func() *evidence.Snapshot {
				return strictServer(clock(evidence.CPUClock{CPUs: 64, Driver: "intel_pstate", Governor: "performance", LowestKHz: 800000, MostKHz: 1900000, HardwareKHz: 3800000}))
			}},
		{"strict-cpu-intel", sound("powersave of intel_pstate is its normal governor", "cpu-held-down"),
			func() *evidence.Snapshot {
				return strictServer(clock(evidence.CPUClock{CPUs: 64, Driver: "intel_pstate", Governor: "powersave", LowestKHz: 800000, MostKHz: 3800000, HardwareKHz: 3800000}))
			}},
		{"strict-gpu-hot", misleads("One of two GPUs is slowed down for heat", "gpu-held-down", "GPU clocks: the hardware slows it down for heat"),
			func() *evidence.Snapshot { return strictServer(reasons(0x40)) }},
		{"strict-gpu-at-its-limit", sound("A GPU at its power limit is as busy as it should be", "gpu-held-down"),
			func() *evidence.Snapshot { return strictServer(reasons(0x4)) }},
		{"strict-graphs-off-by-config", misleads("CUDA graphs are off by the compilation config", "distorting-flag", `--compilation-config {"cudagraph_mode":"NONE"}`),
			func() *evidence.Snapshot {
				return strictServer(nil, "--compilation-config", `{"cudagraph_mode":"NONE"}`)
			}},
		{"strict-graphs-on-by-config", sound("The compilation config names a CUDA graph mode", "distorting-flag"),
			func() *evidence.Snapshot {
				return strictServer(nil, "--compilation-config", `{"mode":3,"cudagraph_mode":"FULL_AND_PIECEWISE"}`)
			}},
		{"strict-underscores", misleads("vLLM takes underscores for dashes", "distorting-flag", "--enforce-eager"),
			func() *evidence.Snapshot { return strictServer(nil, "--enforce_eager") }},
		{"strict-speculation", misleads("Speculative decoding", "distorting-flag", "--speculative-config"),
			func() *evidence.Snapshot {
				return strictServer(nil, "--speculative-config", `{"method":"ngram","num_speculative_tokens":4}`)
			}},
		{"strict-start-only", want{Says: "What slows down the start alone is a warning and no reason to exit with 10",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0, Findings: []rule.ID{"answers", "distorting-flag"}, Warnings: []string{"CUDA_CACHE_DISABLE=1"}},
			func() *evidence.Snapshot {
				return strictServer(func(s *evidence.Snapshot) { s.Processes[0].Env = map[string]string{"CUDA_CACHE_DISABLE": "1"} })
			}},
	}
}

package rules_test

import (
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

const (
	kimi     = "/shared/kimi-k2.5-int4"
	incident = 50299
)

// incidentServer is the server of the incident: eight ranks on eight GPUs, 547
// GB of weights, and the flags that were left over.
func incidentServer() *snap {
	b := aServer(incident, "python3", "-m", "sglang.launch_server", "--model-path", kimi, "--served-model-name", kimi, "--tp", "8",
		"--host", "0.0.0.0", "--port", "8000", "--trust-remote-code", "--disable-cuda-graph", "--log-level", "debug")
	b.s.Host.ZoneOffsetS = 0
	for tp := range 8 {
		b.process(50700+tp, incident, fmt.Sprintf("sglang::scheduler_TP%d", tp))
	}
	b.process(50710, incident, "sglang::detokenizer")
	b.s.Weights = &evidence.Weights{Path: kimi, FoundBy: "the command line", Format: "safetensors", TotalBytes: 547_000_000_000, FSType: "ext4"}
	for n := 1; n <= 64; n++ {
		b.s.Weights.Files = append(b.s.Weights.Files, evidence.WeightFile{Path: fmt.Sprintf("%s/model-%05d-of-00064.safetensors", kimi, n), SizeBytes: 547_000_000_000 / 64})
	}
	return b.probe(evidence.ProbeRun{Name: evidence.ProbeGPU, Status: evidence.OK, TookMS: 40})
}

// taken moves a snapshot to the evening of the incident.
func (b *snap) taken(clock string) *snap {
	at, err := time.Parse("2006-01-02 15:04:05", "2026-02-22 "+clock)
	if err != nil {
		panic(err)
	}
	shift := at.Sub(b.s.Taken)
	b.s.Taken = at
	for i := range b.s.Frames {
		b.s.Frames[i].At = b.s.Frames[i].At.Add(shift)
	}
	for i := range b.s.Processes {
		b.s.Processes[i].Started = at.Add(-6 * time.Minute)
	}
	for i := range b.s.Logs {
		b.s.Logs[i].Modified = b.s.Logs[i].Modified.Add(shift)
	}
	return b
}

// asleep are the 131 threads they saw: 130 wait for work and one for the
// outside world, which strace did not tell apart.
func asleep() []evidence.ThreadFrame {
	return in(sleepers(incident, 130, "python3"), incident+130, "python3", "S", "232 0x5 0x7f 0x400 0xffffffff 0x0 0x8 0x7f 0x7f", "do_epoll_wait")
}

// gpus are eight cards with 76 GB used at 0 %.
func (b *snap) gpus() *snap {
	b.s.GPU = &evidence.GPU{Driver: "580.95.05", Library: "NVML"}
	for i := range 8 {
		b.s.GPU.Devices = append(b.s.GPU.Devices, evidence.GPUDevice{Index: i, UUID: fmt.Sprintf("GPU-0000000%d", i), Name: "NVIDIA RTX PRO 6000 Blackwell Server Edition",
			BusID: fmt.Sprintf("00000000:%02x:00.0", 16*(i+1)), MemoryTotalBytes: ptr(uint64(96 << 30)), PowerLimitW: ptr(600.0)})
	}
	for n := range b.s.Frames {
		for i := range 8 {
			b.s.Frames[n].GPUs = append(b.s.Frames[n].GPUs, evidence.GPUFrame{Index: i, MemoryUsedBytes: ptr(uint64(76 << 30)), UtilPercent: ptr(0), MemoryUtilPercent: ptr(0),
				PowerW: ptr(85.0), Processes: []evidence.GPUProcess{{PID: 50700 + i, InTree: true}}})
		}
	}
	return b
}

// ranks gives all eight schedulers the same moves.
func ranks(m moves) map[int]moves {
	by := map[int]moves{incident: {threads: asleep()}}
	for tp := range 8 {
		mine := m
		for i := range m.threads {
			t := m.threads[i]
			t.TID = 60000 + 100*tp + i
			if i == 0 {
				mine.threads = nil
			}
			mine.threads = append(mine.threads, t)
		}
		by[50700+tp] = mine
	}
	return by
}

func incidentCases() []builtCase {
	quiet := sleepers(0, 9, "python3")
	computing := in(sleepers(0, 8, "python3"), 0, "python3", "R", "running", "")
	flags := []string{"--disable-cuda-graph", "--log-level debug"}
	return []builtCase{
		{"incident-1-reading", want{
			Says:    "The incident while the shards are read: 40 % of the bar, port silent, 131 threads asleep, 76 GB on each GPU at 0 %",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read", "distorting-flag"}, Near: []rule.ID{"lock-cycle", "no-movement", "ready-by-its-word"},
			Sentence: []string{"weights"}, Warnings: flags,
		}, func() *evidence.Snapshot {
			b := incidentServer()
			for tp := range 8 {
				b.s.Processes[1+tp].Files = []evidence.OpenFile{{Path: kimi + "/model-00026-of-00064.safetensors", SizeBytes: ptr(uint64(547_000_000_000 / 64)), FD: 9, PosBytes: ptr(uint64(1 << 30))}}
			}
			b.frames(ranks(moves{user: 200, system: 350, disk: 1 << 30, read: 1 << 30, path: kimi + "/model-00026-of-00064.safetensors", from: 1 << 30, position: 1 << 30, threads: computing}), 0, 0.1, 0.5, 1, 1.5, 2.1).gpus()
			b.log("incident-sglang", 88, 1).taken("22:54:20")
			bar := b.mark("common.weights.shards")
			bar.Last.Values = map[string]string{"percent": "40", "done": "26", "total": "64"}
			return b.done()
		}},
		{"incident-2-dequantising", want{
			Says:    "The incident in its five silent minutes: the bar is at 100 %, every thread they looked at sleeps, eight ranks dequantise on one thread each",
			Verdict: rule.Loading, Cause: rule.WeightsConvert, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-convert", "distorting-flag"}, Near: []rule.ID{"lock-cycle", "no-movement", "weights-read"},
			Sentence: []string{"converts its weights"}, Warnings: flags,
		}, func() *evidence.Snapshot {
			b := incidentServer().frames(ranks(moves{user: 950, system: 30, faults: 4000, anon: 15 << 20, threads: computing}), 0, 0.1, 0.5, 1, 1.5, 2.1).gpus()
			return b.log("incident-sglang", 88, 180).taken("22:57:30").done()
		}},
		{"incident-2-half-of-the-ranks", want{
			Says:    "The same, when four of the eight ranks have ended",
			Verdict: rule.Loading, Cause: rule.WeightsConvert, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-convert", "distorting-flag"}, Near: []rule.ID{"phase-moves", "no-movement"},
			Sentence: []string{"4 of 8 ranks have ended it, not yet TP4, TP5, TP6, TP7"}, Warnings: flags,
		}, func() *evidence.Snapshot {
			b := incidentServer().frames(ranks(moves{user: 950, system: 30, faults: 4000, anon: 15 << 20, threads: computing}), 0, 0.1, 0.5, 1, 1.5, 2.1).gpus()
			return b.log("incident-sglang", 92, 1).taken("22:58:25").done()
		}},
		{"incident-3-ready-passive", want{
			Says:    "The incident after the load, with --passive: ready at line 312 of a log of which 80 lines had been read",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word", "distorting-flag"}, Near: []rule.ID{"lock-cycle", "no-movement", "phase-moves"},
			Sentence: []string{"line 312", "130 threads wait for work"}, Warnings: flags,
		}, func() *evidence.Snapshot {
			b := incidentServer().frames(ranks(moves{threads: quiet}), 0, 0.1, 1, 5, 10).gpus()
			b.s.Asked.Passive = true
			b.listens(incident, 8000, 0).log("incident-sglang", 312, 40)
			return b.taken("22:59:48").probe(evidence.ProbeRun{Name: evidence.ProbeCheck, Status: evidence.Skipped, Detail: "not asked: --passive"}).done()
		}},
		{"incident-4-ready-below-baseline", want{
			Says:    "The incident's check and benchmark, compared with the baseline of 82.5 tok/s",
			Verdict: rule.Ready, Cause: rule.BelowBaseline, Strength: rule.Proved, ExitCode: 10,
			Findings: []rule.ID{"answers", "distorting-flag"}, Near: []rule.ID{"wrong-answer", "no-answer", "says-loading"},
			Sentence: []string{"ratio 0.33", "--disable-cuda-graph"}, Warnings: flags,
		}, incidentBenchmarked},
	}
}

func incidentBenchmarked() *evidence.Snapshot {
	b := incidentServer().frames(ranks(moves{threads: sleepers(0, 9, "python3")}), 0, 0.1).gpus()
	b.listens(incident, 8000, 0).log("incident-sglang", 312, 300).taken("23:04:08")
	b.s.Asked.BaselineTokS = ptr(82.5)
	e := answered(" The user is asking for the answer to \"2+2\" and wants me to reply in one word.\n\n 2+2 = 4\n\n The word")
	e.FinishReason, e.CompletionTokens, e.Chunks, e.E2ELMS = "length", 32, 32, 1190
	b.checked(evidence.CheckPassTruncated, "it reasoned its way to 4 and was cut off at 32 tokens", e)
	b.s.Check.ModelID = kimi
	b.s.Bench = &evidence.Bench{Date: "20260222-230000", Backend: "sglang", EndpointType: "openai-chat", Label: "whyhang", ModelID: kimi, BaseURL: "http://127.0.0.1:8000", Complete: true,
		SingleStream: evidence.SingleStream{NumPrompts: 3, MaxConcurrency: 1, RequestRate: "inf", Completed: 3, Duration: 28.47,
			TotalInputTokens: 57, TotalOutputTokens: 768, RequestThroughput: 0.105, OutputThroughput: 26.98, TotalTokenThroughput: 28.98,
			MeanTPOTMS: 37.03, MedianTPOTMS: 37.0, StdTPOTMS: 0.45, MeanE2ELMS: 9490, MedianE2ELMS: 9480, StdE2ELMS: 115,
			DecodeTokS:       evidence.Estimate{Mean: 27.0, Std: 0.3, CV: 0.0111, SE: 0.173, TCritical: 4.303, CILow: 26.25, CIHigh: 27.75, N: 3},
			TokenCountSource: "usage", InputLens: []int{18, 20, 19}, OutputLens: []int{256, 256, 256}, TTFTs: []float64{0.05, 0.05, 0.05},
			Latencies: []float64{9.61, 9.48, 9.38}, StartTimes: []float64{0, 9.61, 19.09}, DecodeRates: []float64{26.7, 27.0, 27.3},
			FinishReasons: []string{"length", "length", "length"}, Errors: []string{"", "", ""}}}
	return b.done()
}

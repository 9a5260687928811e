package rules_test

import (
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

const dockerID = "4f1c2a9be07d5a6c88e1b3f0a2d4c6e8f0123456789abcdef0123456789abcde"

// group adds a control group with all processes in it, and what each look at it
// shows.
func (b *snap) group(g evidence.Cgroup, show func(look int) evidence.CgroupFrame) *snap {
	if b.s.Kernel == nil {
		b.s.Kernel = &evidence.Kernel{}
	}
	if g.PIDs == nil {
		for i := range b.s.Processes {
			g.PIDs = append(g.PIDs, b.s.Processes[i].PID)
		}
	}
	for i := range b.s.Frames {
		if b.s.Frames[i].Kernel == nil {
			b.s.Frames[i].Kernel = &evidence.KernelFrame{OOMKills: ptr(uint64(0))}
		}
		f := show(i)
		f.Cgroup = len(b.s.Kernel.Cgroups)
		b.s.Frames[i].Kernel.Cgroups = append(b.s.Frames[i].Kernel.Cgroups, f)
	}
	b.s.Kernel.Cgroups = append(b.s.Kernel.Cgroups, g)
	return b.probe(evidence.ProbeRun{Name: evidence.ProbeCgroup, Status: evidence.OK, TookMS: 2})
}

// always shows the same in every look.
func always(f evidence.CgroupFrame) func(int) evidence.CgroupFrame {
	return func(int) evidence.CgroupFrame { return f }
}

// shares makes every thread in state R run and wait in these shares of a
// processor.
func (b *snap) shares(ran, waited float64) *snap {
	for i := range b.s.Frames {
		ns := b.s.Frames[i].SinceMS * 1e6
		for j := range b.s.Frames[i].Processes {
			for k := range b.s.Frames[i].Processes[j].Threads {
				if t := &b.s.Frames[i].Processes[j].Threads[k]; t.State == "R" {
					t.RunNS, t.DelayNS, t.Slices = ptr(uint64(1e6+ns*ran)), ptr(uint64(1000+ns*waited)), ptr(uint64(10+ns/1e8))
				}
			}
		}
	}
	return b
}

// quota is a group with a quota of 5 % of a processor, used up in the given
// share of its periods.
func (b *snap) quota(share float64) *snap {
	return b.group(evidence.Cgroup{Version: 2, Path: "/system.slice/docker-" + dockerID + ".scope", Dir: "/sys/fs/cgroup/system.slice/docker-" + dockerID + ".scope"},
		func(look int) evidence.CgroupFrame {
			periods := b.s.Frames[look].SinceMS / 100
			return evidence.CgroupFrame{QuotaUS: ptr(uint64(5000)), PeriodUS: ptr(uint64(100000)),
				Periods: ptr(uint64(700 + periods)), Throttled: ptr(uint64(650 + periods*share)), ThrottledUS: ptr(uint64(periods * share * 95000))}
		})
}

// pressed adds pressure of the whole machine: shares of the time.
func (b *snap) pressed(cpuSome, memoryFull float64, swapIn uint64) *snap {
	for i := range b.s.Frames {
		us := b.s.Frames[i].SinceMS * 1000
		b.s.Frames[i].Kernel.Pressure = &evidence.Pressure{
			CPU:    &evidence.Stall{SomeUS: uint64(5e6 + us*cpuSome), FullUS: ptr(uint64(0))},
			Memory: &evidence.Stall{SomeUS: uint64(7e6 + us*memoryFull), FullUS: ptr(uint64(6e6 + us*memoryFull))}}
		b.s.Frames[i].Kernel.SwapInPages = ptr(uint64(40 + float64(swapIn)*us/1e6))
	}
	return b
}

// computing is a server at work in one thread, with its weights in its hands.
func computing(extra moves) *snap {
	extra.state = "R"
	extra.threads = in(sleepers(9500, 3, "python3"), 9414, "python3", "R", "running", "")
	b := vllmServer().weights("/models/smollm2-135m/model.safetensors", 1<<31)
	return b.frames(map[int]moves{9414: extra}, 0, 0.1, 1, 3, 5, 10.2).log("vllm-0.32-cpu-first-start", 37, 600)
}

func frozenCases() []builtCase {
	frozen := evidence.CgroupFrame{Freezer: evidence.Frozen, FreezeSelf: ptr(true)}
	return []builtCase{
		{"frozen-docker-v1", want{
			Says:    "docker pause on a machine with control groups of version 1: state D",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"frozen"}, Near: []rule.ID{"no-movement", "ready-by-its-word", "paused"},
			Sentence: []string{"frozen", "as docker pause does it", "process 9414"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{9414: {state: "D"}}, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			for i := range b.s.Processes {
				b.s.Processes[i].Container = dockerID
			}
			return b.group(evidence.Cgroup{Version: 1, Controllers: []string{"freezer"}, Path: "/docker/" + dockerID, Dir: "/sys/fs/cgroup/freezer/docker/" + dockerID}, always(frozen)).done()
		}},
		{"frozen-above-v2", want{
			Says:    "The slice above the server is frozen, its own group only follows: state S like any sleeper",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"frozen"}, Near: []rule.ID{"no-movement", "ready-by-its-word"},
			Sentence: []string{"control group /batch.slice,", "systemctl freeze"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.group(evidence.Cgroup{Version: 2, Path: "/batch.slice/vllm.service", Dir: "/sys/fs/cgroup/batch.slice/vllm.service"}, always(evidence.CgroupFrame{Freezer: evidence.Frozen, FreezeSelf: ptr(false)}))
			return b.group(evidence.Cgroup{Version: 2, Path: "/batch.slice", Dir: "/sys/fs/cgroup/batch.slice"}, always(frozen)).done()
		}},
		{"thawed", want{
			Says:    "The same sleepers in a group that can be frozen and is not",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"frozen"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.s.Asked.Passive = true
			return b.group(evidence.Cgroup{Version: 2, Path: "/batch.slice/vllm.service", Dir: "/sys/fs/cgroup/batch.slice/vllm.service"}, always(evidence.CgroupFrame{Freezer: evidence.Thawed, FreezeSelf: ptr(false)})).done()
		}},
		{"thawed-meanwhile", want{
			Says:    "A snapshot of the container froze it for a moment; the last look finds it thawed",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word"}, Near: []rule.ID{"frozen"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1.1).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.s.Asked.Passive = true
			return b.group(evidence.Cgroup{Version: 2, Path: "/x", Dir: "/sys/fs/cgroup/x"}, func(look int) evidence.CgroupFrame {
				if look == 2 {
					return evidence.CgroupFrame{Freezer: evidence.Thawed, FreezeSelf: ptr(false)}
				}
				return frozen
			}).done()
		}},
	}
}

func starvedCases() []builtCase {
	return []builtCase{
		{"starved-quota", want{
			Says:    "A quota of 5 % of a processor: one thread computes, nothing comes of it in 10 s",
			Verdict: rule.Stalled, Cause: rule.Starved, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"starved"}, Near: []rule.ID{"no-movement", "weights-convert", "phase-moves", "gets-too-little"},
			Sentence: []string{"starved", "5 % of the processor time", "0.05 processors", "100 % of its periods"},
		}, func() *evidence.Snapshot {
			return computing(moves{user: 50}).quota(1).shares(0.05, 0.95).done()
		}},
		{"starved-but-converts", want{
			Says:    "The same quota, and memory grows by 20 KB a second, which were 400 KB on a machine of its own: it loads, slowly",
			Verdict: rule.Loading, Cause: rule.WeightsConvert, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-convert", "gets-too-little"}, Near: []rule.ID{"starved"},
		}, func() *evidence.Snapshot {
			return computing(moves{user: 50, anon: 20 << 10}).quota(1).shares(0.05, 0.95).done()
		}},
		{"quota-not-used-up", want{
			Says:    "The same group and computing thread, and the quota is never used up",
			Verdict: rule.Loading, Cause: rule.WeightsConvert, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"weights-convert"}, Near: []rule.ID{"starved", "gets-too-little"},
		}, func() *evidence.Snapshot {
			return computing(moves{user: 980}).quota(0).shares(0.98, 0.02).done()
		}},
		{"starved-crowd", want{
			Says:    "No quota: forty others on two processors leave it a twentieth",
			Verdict: rule.Stalled, Cause: rule.Starved, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"starved"}, Near: []rule.ID{"no-movement", "weights-convert", "phase-moves"},
			Sentence: []string{"crowded machine"},
		}, func() *evidence.Snapshot {
			return computing(moves{user: 50}).quota(0).pressed(0.99, 0, 0).shares(0.05, 0.95).done()
		}},
		{"starved-memory", want{
			Says:    "Everything waits for pages from swap",
			Verdict: rule.Stalled, Cause: rule.Starved, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"starved"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"memory is so short", "70 % of the time", "900 pages a second"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{9414: {state: "D", disk: 3 << 20, file: 300 << 10}}, 0, 0.1, 1, 3, 5, 10.2)
			return b.quota(0).pressed(0.1, 0.7, 900).done()
		}},
		{"memory-short-but-reads", want{
			Says:    "Memory as short, and read calls bring 3 MB a second of new bytes: it loads",
			Verdict: rule.Loading, Cause: rule.Starting, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"phase-moves", "gets-too-little"}, Near: []rule.ID{"starved"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(map[int]moves{9414: {state: "D", read: 3 << 20, disk: 3 << 20}}, 0, 0.1, 1, 3, 5, 10.2)
			return b.quota(0).pressed(0.1, 0.7, 900).done()
		}},
	}
}

// TestThawCommands holds that each kind of group is thawed by its own tool.
func TestThawCommands(t *testing.T) {
	for _, tc := range []struct {
		g       evidence.Cgroup
		id      string
		uid     int
		command string
	}{
		{evidence.Cgroup{Version: 1, Path: "/docker/" + dockerID, Dir: "/f/docker/" + dockerID}, dockerID, 0, "docker unpause " + dockerID[:12]},
		{evidence.Cgroup{Version: 2, Path: "/machine.slice/libpod-" + dockerID + ".scope", Dir: "/c"}, dockerID, 0, "podman unpause " + dockerID[:12]},
		{evidence.Cgroup{Version: 2, Path: "/kubepods.slice/cri-containerd-" + dockerID + ".scope", Dir: "/c"}, dockerID, 0, "sudo ctr -n k8s.io tasks resume " + dockerID},
		{evidence.Cgroup{Version: 2, Path: "/system.slice/vllm.service", Dir: "/c/vllm.service"}, "", 0, "sudo systemctl thaw vllm.service"},
		{evidence.Cgroup{Version: 1, Path: "/jobs", Dir: "/f/jobs"}, "", 0, "echo THAWED > /f/jobs/freezer.state"},
		{evidence.Cgroup{Version: 2, Path: "/jobs", Dir: "/c/my jobs;x"}, "", 1000, "echo 0 | sudo tee '/c/my jobs;x/cgroup.freeze'"},
		{evidence.Cgroup{Version: 2, Path: "/" + dockerID, Dir: "/c/x"}, "", 0, "echo 0 > /c/x/cgroup.freeze"},
	} {
		b := vllmServer().frames(nil, 0, 0.1, 1.1)
		b.s.Host.UID = tc.uid
		for i := range b.s.Processes {
			b.s.Processes[i].Container = tc.id
		}
		j := rules.Judge(b.group(tc.g, always(evidence.CgroupFrame{Freezer: evidence.Frozen, FreezeSelf: ptr(true)})).done())
		if j.Cause != rule.Paused || len(j.Next) == 0 || j.Next[0].Command != tc.command {
			t.Errorf("%s: %s %+v, want %q", tc.g.Path, j.Cause, j.Next, tc.command)
		}
	}
	// A group that only follows one above it, which is not visible.
	b := vllmServer().frames(nil, 0, 0.1, 1.1)
	j := rules.Judge(b.group(evidence.Cgroup{Version: 2, Path: "/", Dir: "/c"}, always(evidence.CgroupFrame{Freezer: evidence.Frozen, FreezeSelf: ptr(false)})).done())
	if j.Cause != rule.Paused || j.Next[0].Command != "" || !strings.Contains(j.Next[0].Do, "not visible from here") {
		t.Errorf("%s %+v", j.Cause, j.Next)
	}
}

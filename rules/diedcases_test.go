package rules_test

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// memoryGroup puts all processes into a memory group with nobody else, which
// counts so many kills in each look.
func (b *snap) memoryGroup(kills ...uint64) *snap {
	return b.group(evidence.Cgroup{Version: 1, Controllers: []string{"memory"}, Path: "/serving", Dir: "/sys/fs/cgroup/memory/serving", Foreign: ptr(0)},
		func(look int) evidence.CgroupFrame {
			return evidence.CgroupFrame{MemoryLimitBytes: ptr(uint64(64 << 20)), MemoryBytes: ptr(uint64(40 << 20)), OOMKills: ptr(kills[min(look, len(kills)-1)])}
		})
}

// kernelLog adds a kernel's log that reaches back to the start.
func (b *snap) kernelLog(kills ...evidence.OOMKill) *snap {
	if b.s.Kernel == nil {
		b.s.Kernel = &evidence.Kernel{}
	}
	b.s.Kernel.Log = &evidence.KernelLog{Complete: true, SamePIDs: true, Kills: kills}
	return b.probe(evidence.ProbeRun{Name: evidence.ProbeKernel, Status: evidence.OK, TookMS: 4})
}

func killed(pid int, name string) evidence.OOMKill {
	return evidence.OOMKill{At: then.Add(-time.Minute), PID: pid, Name: name, Cgroup: "/serving", Limit: true, AnonBytes: ptr(uint64(62 << 20)),
		Text: "Memory cgroup out of memory: Killed process 10240 (" + name + ") total-vm:207956kB, anon-rss:63488kB, file-rss:1024kB, shmem-rss:0kB, UID:0 pgtables:160kB oom_score_adj:0"}
}

// lostWorker is vLLM whose second worker was killed by signal 9 before the
// first look.
func lostWorker() *snap {
	b := vllmServer()
	i := 3
	b.s.Processes[i].State, b.s.Processes[i].WaitStatus = "Z", ptr(9)
	return b.frames(map[int]moves{10240: {state: "Z", waitStatus: ptr(9)}}, 0, 0.1, 0.6)
}

func killedCases() []builtCase {
	byMemory := func(strength rule.Strength, says string, pieces ...string) want {
		return want{Says: says, Verdict: rule.Broken, Cause: rule.OOMKilled, Strength: strength, ExitCode: 7,
			Findings: []rule.ID{"oom-killed"}, Near: []rule.ID{"dead-child"}, Sentence: pieces}
	}
	byHand := func(says string) want {
		return want{Says: says, Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"dead-child"}, Near: []rule.ID{"oom-killed"}, Sentence: []string{"killed by signal 9 (SIGKILL)"}}
	}
	return []builtCase{
		{"oom-killed-log", byMemory(rule.Proved, "The kernel's log names the worker it killed", "the kernel's log names it", "memory limit"),
			func() *evidence.Snapshot {
				return lostWorker().memoryGroup(1).kernelLog(killed(10240, "VLLM::Worker_TP")).done()
			}},
		{"oom-killed-counter", byMemory(rule.Strong, "The kernel's log may not be read; the server's own memory group counts a kill", "/serving, which holds nothing else, counts 1"),
			func() *evidence.Snapshot {
				return lostWorker().memoryGroup(1).probe(evidence.ProbeRun{Name: evidence.ProbeKernel, Status: evidence.Denied, Detail: "/dev/kmsg: operation not permitted"}).done()
			}},
		{"oom-killed-in-sight", byMemory(rule.Strong, "The worker ends while whyhang looks, and the counter grows", "grew"),
			func() *evidence.Snapshot {
				b := vllmServer().frames(nil, 0, 0.1, 0.6)
				p := &b.s.Frames[2].Processes[3]
				*p = evidence.ProcessFrame{PID: p.PID}
				return b.memoryGroup(3, 3, 4).done()
			}},
		{"oom-killed-before-the-look", byMemory(rule.Proved, "A zombie without a command line, the engine core is missing, and the kernel's log names the zombie", "vLLM's engine-core is missing"),
			func() *evidence.Snapshot {
				b := aServer(9414, "/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/x").process(10240, 9414, "exe")
				b.last().Argv, b.last().State = nil, "Z"
				return b.frames(map[int]moves{10240: {state: "Z", waitStatus: ptr(9)}}, 0, 0.1, 0.6).memoryGroup(1).kernelLog(killed(10240, "exe")).done()
			}},
		{"killed-by-hand", byHand("kill -9 in a group that counts no kill for memory: exit status 137 too"),
			func() *evidence.Snapshot { return lostWorker().memoryGroup(0).kernelLog().done() }},
		{"killed-by-hand-after-an-oom", byHand("kill -9 in a group in which memory once killed a compiler: the kernel's log does not name the worker"),
			func() *evidence.Snapshot { return lostWorker().memoryGroup(1).kernelLog(killed(9999, "cicc")).done() }},
		{"killed-in-sight-after-an-oom", byHand("kill -9 while whyhang looks; the counter stood above zero before and does not grow"),
			func() *evidence.Snapshot {
				b := vllmServer().frames(nil, 0, 0.1, 0.6)
				p := &b.s.Frames[2].Processes[3]
				*p = evidence.ProcessFrame{PID: p.PID, State: "Z", WaitStatus: ptr(9)}
				return b.memoryGroup(1).done()
			}},
		{"aborted-beside-an-oom", want{
			Says:    "The worker aborted by itself; memory killed something else in its group",
			Verdict: rule.Broken, Cause: rule.DeadChild, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"dead-child"}, Near: []rule.ID{"oom-killed"}, Sentence: []string{"SIGABRT"},
		}, func() *evidence.Snapshot {
			b := vllmServer()
			b.s.Processes[3].State = "Z"
			return b.frames(map[int]moves{10240: {state: "Z", waitStatus: ptr(6)}}, 0, 0.1, 0.6).memoryGroup(1).done()
		}},
		{"oom-killed-helper-but-answers", want{
			Says:    "A child of an unknown server was killed for memory, and the server answers all the same",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "oom-killed"}, Near: []rule.ID{"dead-child"},
		}, func() *evidence.Snapshot {
			b := aServer(9414, "./server").process(10240, 9414, "./helper")
			b.s.Processes[1].State = "Z"
			b.frames(map[int]moves{10240: {state: "Z", waitStatus: ptr(9)}}, 0, 0.1, 0.6).memoryGroup(1).kernelLog(killed(10240, "helper"))
			return b.listens(9414, 8000, 0).checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
	}
}

// room adds a file system that holds the server's log.
func (b *snap) room(what string, avail, freeInodes uint64) *snap {
	if b.s.Kernel == nil {
		b.s.Kernel = &evidence.Kernel{}
	}
	b.s.Kernel.FileSystems = append(b.s.Kernel.FileSystems, evidence.FileSystem{PID: 9414, Mount: "/data", FSType: "ext4", UID: 0,
		For: []evidence.Use{{PID: 9414, What: what, Path: "/data/x"}}, SizeBytes: 100 << 30, FreeBytes: avail, AvailBytes: avail, Inodes: 6 << 20, FreeInodes: freeInodes})
	return b
}

// noSpace adds the line to the log.
func (b *snap) noSpace(line int64) *snap {
	l := &b.s.Logs[0]
	l.Marks = append(l.Marks, evidence.Mark{Signature: "common.any.no-space", Engine: "common", Kind: evidence.KindFatal, Count: 1,
		First: evidence.Hit{Line: line, Text: "OSError: [Errno 28] No space left on device"}})
	return b
}

func fullCases() []builtCase {
	broken := func(says string, pieces ...string) want {
		return want{Says: says, Verdict: rule.Broken, Cause: rule.DiskFull, Strength: rule.Strong, ExitCode: 7,
			Findings: []rule.ID{"disk-full"}, Near: []rule.ID{"fatal-error", "no-movement", "full-disk"}, Sentence: pieces}
	}
	still := func() *snap {
		return vllmServer().frames(nil, 0, 0.1, 5, 10).log("vllm-0.32-cpu-first-start", 33, 60)
	}
	return []builtCase{
		{"disk-full-line", broken("The disk with the caches is full, and the log says that no space is left", "/data (HOME /data/x)", "bytes", "line 30"),
			func() *evidence.Snapshot { return still().noSpace(30).room("HOME", 0, 1<<20).done() }},
		{"disk-full-inodes", broken("There are bytes, and no inodes", "no inodes left"),
			func() *evidence.Snapshot { return still().noSpace(30).room("HOME", 1<<33, 0).done() }},
		{"disk-full-log", broken("The log itself lies on the full disk and cannot say so: write calls fail one after another", "every write call of process 9414 fails"),
			func() *evidence.Snapshot {
				b := still().room("fd 1", 0, 1<<20)
				for i := range b.s.Frames {
					b.s.Frames[i].Processes[0].WriteCalls = ptr(uint64(500 + 7*i))
				}
				return b.done()
			}},
		{"no-space-elsewhere", want{
			Says:    "The same line, and all file systems have room: inotify watches, perhaps",
			Verdict: rule.Broken, Cause: rule.FatalError, Strength: rule.Likely, ExitCode: 7,
			Findings: []rule.ID{"fatal-error"}, Near: []rule.ID{"disk-full", "full-disk", "no-movement"},
		}, func() *evidence.Snapshot { return still().noSpace(30).room("HOME", 1<<33, 1<<20).done() }},
		{"full-disk-not-needed", want{
			Says:    "A full disk, a server that is up, and no sign that it needs the disk: a warning",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word", "full-disk"}, Near: []rule.ID{"disk-full"}, Warnings: []string{"/tmp /data/x"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.s.Asked.Passive = true
			return b.room("/tmp", 0, 1<<20).done()
		}},
		{"disk-full-but-answers", want{
			Says:    "The log's disk is full and every line is lost, and the server answers: ready, with a warning",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Proved, ExitCode: 0,
			Findings: []rule.ID{"answers", "disk-full"}, Near: []rule.ID{"full-disk"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1, 10).listens(9414, 8000, 0).room("fd 1", 0, 1<<20)
			for i := range b.s.Frames {
				b.s.Frames[i].Processes[0].WriteCalls = ptr(uint64(500 + 7*i))
			}
			return b.checked(evidence.CheckPass, `it answered "4" in 0.4 s`, answered("4")).done()
		}},
		{"disk-full-but-loads", want{
			Says:    "Caches cannot be kept for want of room, and the weights come in: loading, with a warning",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read", "disk-full"}, Near: []rule.ID{"no-movement"},
		}, func() *evidence.Snapshot {
			path := "/models/smollm2-135m/model.safetensors"
			b := vllmServer().weights(path, 1<<31)
			return b.frames(map[int]moves{10100: {read: 30e6, path: path, from: 1 << 20, position: 30e6, system: 20}}, 0, 0.1, 1, 2, 3, 5, 10.2).
				log("vllm-0.32-cpu-first-start", 37, 600).noSpace(30).room("HOME", 0, 1<<20).done()
		}},
	}
}

package rules_test

import (
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// atStorage lets a thread of a process wait for a file system in the looks given
// by number, and says of all looks that they were at threads.
func (b *snap) atStorage(w evidence.StorageWait, looks ...int) *snap {
	for n := range b.s.Frames {
		b.s.Frames[n].StorageLooked = true
	}
	w.RunNS, w.Slices = ptr(uint64(5e9)), ptr(uint64(1234))
	for _, n := range looks {
		b.s.Frames[n].Storage = append(b.s.Frames[n].Storage, w)
	}
	return b
}

// faultOn is a page fault on mapped weights of a mount.
func faultOn(pid int, fsType, source string) evidence.StorageWait {
	return evidence.StorageWait{PID: pid, TID: pid, Name: "VLLM::Worker_TP", State: "D", Syscall: "-1 0x7ffd7d842d10 0x563d32f1f50b",
		Wchan: "folio_wait_bit_common", Guessed: true, Mount: &evidence.Mount{ID: 77, Point: "/models", FSType: fsType, Source: source}}
}

// preadOf is a pread of a file on a local disk.
func preadOf(pid int, path string) evidence.StorageWait {
	return evidence.StorageWait{PID: pid, TID: pid + 1, Name: "loader", State: "D", Syscall: "17 0x9 0x7f1000000000 0x100000 0x40000000 0x0 0x0 0x7ffd7d842d10 0x7f32f1f50b",
		Wchan: "folio_wait_bit_common", Path: path, Mount: &evidence.Mount{ID: 31, Point: "/models", FSType: "ext4", Source: "/dev/nvme1n1"}}
}

// ranks8 are eight ranks of SGLang that have shards in their hands, rank n at
// pos(n) of them, moving by as much a second as said.
func ranks8(files func(rank int) string, size uint64, from, perSecond func(rank int) uint64) *snap {
	b := aServer(100, "python3", "-m", "sglang.launch_server", "--model-path", "/models/m", "--tp", "8")
	by := map[int]moves{}
	for n := range 8 {
		pid := 200 + n
		b.process(pid, 100, fmt.Sprintf("sglang::scheduler_TP%d", n))
		p := b.last()
		p.Files = []evidence.OpenFile{{Path: files(n), SizeBytes: ptr(size), FD: 9, PosBytes: ptr(from(n))}}
		by[pid] = moves{path: files(n), from: from(n), position: perSecond(n), read: perSecond(n), system: 100}
	}
	return b.frames(by, 0, 0.1, 0.35, 0.6, 0.85, 1.1, 1.35, 1.6, 1.85, 2.1)
}

func weightCases() []builtCase {
	weights := "/models/smollm2-135m/model.safetensors"
	still := func(seconds ...float64) *snap {
		b := vllmServer().weights(weights, 1<<31)
		return b.frames(map[int]moves{9414: {threads: sleepers(9414, 4, "python3")}}, seconds...).log("vllm-0.32-cpu-first-start", 37, 600)
	}
	header := func(size, expected uint64) *snap {
		b := vllmServer().weights(weights, size)
		b.s.Weights.Files[0].Header = &evidence.WeightHeader{ExpectedBytes: expected, Tensors: 272}
		b.s.Weights.ExpectedBytes = max(size, expected)
		return b.frames(map[int]moves{10100: {read: 50 << 20, path: weights, from: 1 << 20, position: 50 << 20, system: 20}}, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2).log("vllm-0.32-cpu-first-start", 37, 60)
	}
	same := func(int) string { return "/models/m/model.safetensors" }
	return []builtCase{
		{"storage-nfs", want{
			Says:    "A rank in a page fault on weights from NFS, in every look of 10 s; nothing was read",
			Verdict: rule.Stalled, Cause: rule.Storage, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"storage"}, Near: []rule.ID{"no-movement", "weights-read", "lock-cycle"},
			Sentence: []string{"worker Worker_TP0", "page fault", "nfs4 mount /models from nas:/export/models", "10 s"},
		}, func() *evidence.Snapshot {
			return still(0, 0.1, 1, 5, 10.2).atStorage(faultOn(10239, "nfs4", "nas:/export/models"), 0, 1, 2, 3, 4).done()
		}},
		{"storage-local", want{
			Says:    "A loader in pread on a disk that gives nothing: two looks are enough",
			Verdict: rule.Stalled, Cause: rule.Storage, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"storage"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"pread64 of " + weights, "ext4 mount /models from /dev/nvme1n1"},
		}, func() *evidence.Snapshot {
			return still(0, 10.2).atStorage(preadOf(10239, weights), 0, 1).done()
		}},
		{"storage-two-looks-of-nfs", want{
			Says:    "NFS in two looks only: it pauses, so three are required, and it is only known that nothing moved",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"storage"},
		}, func() *evidence.Snapshot {
			return still(0, 10.2).atStorage(faultOn(10239, "nfs4", "nas:/export/models"), 0, 1).done()
		}},
		{"storage-answered-in-between", want{
			Says:    "One look of five found the thread elsewhere: the store had answered",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"storage"},
		}, func() *evidence.Snapshot {
			return still(0, 0.1, 1, 5, 10.2).atStorage(faultOn(10239, "nfs4", "nas:/export/models"), 0, 1, 3, 4).done()
		}},
		{"storage-slow", want{
			Says:    "The same picture in every look, and bytes come: slow, not stalled",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"storage", "no-movement"},
		}, func() *evidence.Snapshot {
			b := vllmServer().weights(weights, 1<<31)
			b.frames(map[int]moves{10100: {read: 300e3, path: weights, from: 1 << 20, position: 300e3, system: 20}}, 0, 0.1, 1, 2, 3, 5, 10.2).log("vllm-0.32-cpu-first-start", 37, 600)
			return b.atStorage(faultOn(10100, "nfs4", "nas:/export/models"), 0, 1, 2, 3, 4, 5, 6).done()
		}},
		{"storage-beside-a-ready-server", want{
			Says:    "A server that is up has a thread that waits for a dead share: ready by its word, with a warning",
			Verdict: rule.Ready, Cause: rule.Idle, Strength: rule.Strong, ExitCode: 0,
			Findings: []rule.ID{"ready-by-its-word", "storage"}, Near: []rule.ID{"no-movement"},
		}, func() *evidence.Snapshot {
			b := vllmServer().frames(nil, 0, 0.1, 1, 5, 10).listens(9414, 8000, 0).log("vllm-0.32-cpu-first-start", 101, 60)
			b.s.Asked.Passive = true
			return b.atStorage(faultOn(10240, "nfs4", "nas:/logs"), 0, 1, 2, 3, 4).done()
		}},
		{"incomplete-model", want{
			Says:    "A model file shorter than its header says, and a part of the model that is not there",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read", "incomplete-model"}, Warnings: []string{weights, "model-00002-of-00002.safetensors"},
			Sentence: []string{"of 4.9 GiB"},
		}, func() *evidence.Snapshot {
			b := header(1288490188, 5261334937)
			b.s.Weights.Missing, b.s.Weights.MissingCount = []string{"model-00002-of-00002.safetensors"}, 1
			return b.done()
		}},
		{"complete-model", want{
			Says:    "The same file, as long as its header says",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"incomplete-model"},
		}, func() *evidence.Snapshot { return header(5261334937, 5261334937).done() }},
		{"ranks-read-all", want{
			Says:    "Eight ranks read the same file of 10 GiB each: how far is that of the slowest, of 10 GiB",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"of 10.0 GiB (21 %)", "8 ranks read all of it each; process 207 (scheduler TP7) is furthest behind"},
		}, func() *evidence.Snapshot {
			return ranks8(same, 10<<30, func(n int) uint64 { return uint64(9-n) << 30 }, func(n int) uint64 { return 50 << 20 }).done()
		}},
		{"ranks-read-parts", want{
			Says:    "Eight ranks read a file of their own each: how far is their sum",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"of 80.0 GiB (46 %)", "8 ranks read a part each"},
		}, func() *evidence.Snapshot {
			return ranks8(func(n int) string { return fmt.Sprintf("/models/m/model-rank-%d-part-0.safetensors", n) }, 10<<30,
				func(n int) uint64 { return uint64(8-n) << 30 }, func(n int) uint64 { return 50 << 20 }).done()
		}},
		{"ranks-one-stopped", want{
			Says:    "Seven ranks read on, one has stopped and waits for storage: loading, of those that move",
			Verdict: rule.Loading, Cause: rule.WeightsRead, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"weights-read"}, Near: []rule.ID{"storage"},
			Sentence: []string{"process 206 (scheduler TP6) is furthest behind", "process 207 (scheduler TP7) stands still at 2.0 GiB"},
		}, func() *evidence.Snapshot {
			b := ranks8(same, 10<<30, func(n int) uint64 { return uint64(9-n) << 30 }, func(n int) uint64 {
				if n == 7 {
					return 0
				}
				return 50 << 20
			})
			b.s.Taken = then.Add(time.Second)
			return b.atStorage(faultOn(207, "nfs4", "nas:/models"), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9).done()
		}},
	}
}

package rules_test

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// cache adds a cache directory of the root process, looked at from the first to
// the last frame. It comes after frames.
func (b *snap) cache(path, library string, kind evidence.CacheKind, locks ...evidence.LockFile) *snap {
	first, last := b.s.Frames[0].At, b.s.Frames[len(b.s.Frames)-1].At
	for i := range locks {
		locks[i].First, locks[i].Last = first, last
		if locks[i].Asked == nil {
			locks[i].Asked = &last
		}
	}
	b.s.Caches = append(b.s.Caches, evidence.Cache{Path: path, Library: library, Kind: kind, PID: b.s.Target.PID, Looks: len(b.s.Frames), First: first, Last: last, Locks: locks})
	for i := range b.s.Frames {
		b.s.Frames[i].Caches = append(b.s.Frames[i].Caches, evidence.CacheFrame{Path: path, At: b.s.Frames[i].At, Files: 120, Bytes: 40 << 20})
	}
	return b
}

// named says that a variable of the environment names the last cache.
func (b *snap) named(variable string) *snap {
	b.s.Caches[len(b.s.Caches)-1].Variable = variable
	return b
}

// batonLock is a lock file of a torch extension, that old.
func batonLock(age time.Duration, holders ...evidence.FileHolder) evidence.LockFile {
	return evidence.LockFile{Path: extensions + "/custom_ops/lock", Kind: evidence.LockPresence, Modified: then.Add(-age), Inode: 77, Executable: true, Holders: holders}
}

const (
	extensions = "/root/.cache/torch_extensions"
	hubCache   = "/root/.cache/huggingface/hub"
)

// naps makes a thread sleep for a moment that many times a second, as whyhang
// sees it in the first and the last look.
func (b *snap) naps(pid, tid int, perSecond float64) *snap {
	for _, n := range []int{0, len(b.s.Frames) - 1} {
		f := &b.s.Frames[n]
		for j := range f.Processes {
			if f.Processes[j].PID != pid {
				continue
			}
			f.Processes[j].Threads = append(f.Processes[j].Threads, evidence.ThreadFrame{TID: tid, Name: "python3", State: "S", Wchan: "hrtimer_nanosleep",
				Syscall: "230 0x1 0x1 0x7ffc1000 0x0 0x0 0x0 0x7ffc0f00 0x7f0000001000",
				RunNS:   ptr(uint64(1e6 + perSecond*f.SinceMS*30)), DelayNS: ptr(uint64(0)), Slices: ptr(uint64(10 + perSecond*f.SinceMS/1000))})
		}
	}
	return b
}

// python adds the stack of a thread of process 10239 to the readings.
func (b *snap) python(tid int, file, function string) *snap {
	for i := range b.s.Waits {
		b.s.Waits[i].Python = append(b.s.Waits[i].Python, evidence.PythonProcess{PID: 10239, Threads: []evidence.PythonThread{
			{TID: tid, Frames: []evidence.PythonFrame{{File: file, Line: 49, Function: function}}}}})
	}
	return b
}

// partial adds an unfinished download to the cache added last, that grows by so
// many bytes a second; pid has it open.
func (b *snap) partial(pid int, perSecond float64) *snap {
	for i := range b.s.Frames {
		c := &b.s.Frames[i].Caches[len(b.s.Frames[i].Caches)-1]
		size := uint64(1<<30 + perSecond*b.s.Frames[i].SinceMS/1000)
		c.Partial = append(c.Partial, evidence.PartialFile{Path: c.Path + "/models--org--m/blobs/ab12.incomplete", SizeBytes: size, AllocatedBytes: size, Modified: then, PID: pid})
		c.Bytes += size
	}
	return b
}

// wrote lets a process write that many bytes a second.
func (b *snap) wrote(pid int, perSecond float64) *snap {
	for i := range b.s.Frames {
		for j := range b.s.Frames[i].Processes {
			if p := &b.s.Frames[i].Processes[j]; p.PID == pid {
				p.WriteCharBytes = ptr(uint64(1<<20 + perSecond*b.s.Frames[i].SinceMS/1000))
			}
		}
	}
	return b
}

func cacheCases() []builtCase {
	window := []float64{0, 0.1, 2, 5, 10}
	at := func(b *snap) *snap { return b.frames(nil, window...) }
	return []builtCase{
		{"stale-lock-file", want{
			Says:    "A build killed yesterday left its lock file; two workers look for it ten times a second",
			Verdict: rule.Deadlocked, Cause: rule.StaleLockFile, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"stale-lock-file"}, Near: []rule.ID{"no-movement", "kernel-build", "waits-for-build"},
			Sentence: []string{"/custom_ops/lock is 24.0 h old", "no compiler runs"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10239, 9.9).naps(10240, 10240, 9.8).named("TORCH_EXTENSIONS_DIR").done()
		}},
		{"stale-lock-file-below-home", want{
			Says:    "The same below a home directory, and nothing but a rhythm says that anybody waits for it: no proof of anything",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10239, 9.9).naps(10240, 10240, 9.8).done()
		}},
		{"stale-lock-file-of-a-killed-rank", want{
			Says:    "The lock was made after the server started, by file_baton, and nobody has it open: the rank that made it is gone",
			Verdict: rule.Deadlocked, Cause: rule.StaleLockFile, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"stale-lock-file"}, Near: []rule.ID{"no-movement"},
			Sentence: []string{"120 s old"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(2*time.Minute)).naps(10240, 10240, 9.9).named("TORCH_EXTENSIONS_DIR").done()
		}},
		{"stale-lock-file-in-use", want{
			Says:    "The same lock file, open in a process that does nothing: nobody knows whether it builds",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file", "waits-for-build"},
		}, func() *evidence.Snapshot {
			idle := evidence.FileHolder{PID: 555, Name: "python3", FD: 9, WorkMS: ptr(0.0), OverMS: ptr(9000.0)}
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour, idle)).naps(10239, 10239, 9.9).done()
		}},
		{"stale-lock-file-on-nfs", want{
			Says:    "The same lock file on a store that other machines share: one of them may build",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file"},
		}, func() *evidence.Snapshot {
			b := at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10239, 9.9)
			b.s.Caches[0].FSType, b.s.Caches[0].Remote = "nfs", true
			return b.done()
		}},
		{"stale-lock-file-unused", want{
			Says:    "An old lock file lies about, and what naps is a watchdog thread: the workers hang elsewhere",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10777, 9.9).done()
		}},
		{"stale-lock-file-supervisor", want{
			Says:    "An old lock file lies about, and what naps in the same rhythm is a parent that looks after its children",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(9414, 9414, 9.9).done()
		}},
		{"stale-lock-file-and-another-nap", want{
			Says:    "An old lock file lies about, and the worker that naps is in another library by Python's own stack",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file"},
		}, func() *evidence.Snapshot {
			b := at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10239, 9.9).waits()
			return b.python(10239, "/opt/vllm/lib/python3.12/site-packages/vllm/distributed/utils.py", "wait_for_peer").done()
		}},
		{"stale-lock-file-in-a-thread", want{
			Says:    "Another thread than the first waits, in file_baton.py by Python's own stack",
			Verdict: rule.Deadlocked, Cause: rule.StaleLockFile, Strength: rule.Strong, ExitCode: 5,
			Findings: []rule.ID{"stale-lock-file"}, Near: []rule.ID{"no-movement"},
		}, func() *evidence.Snapshot {
			b := at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(24*time.Hour)).naps(10239, 10777, 9.9).waits()
			return b.python(10777, "/opt/vllm/lib/python3.12/site-packages/torch/utils/file_baton.py", "wait").done()
		}},
		{"kernel-lock-unheld", want{
			Says:    "An old lock file of the hub, held by nobody, and a first thread that naps: the file is harmless",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"stale-lock-file", "download-stalled"},
		}, func() *evidence.Snapshot {
			l := evidence.LockFile{Path: hubCache + "/.locks/models--org--m/ab12.lock", Kind: evidence.LockKernel, Modified: then.Add(-24 * time.Hour), Inode: 78}
			return at(vllmServer()).cache(hubCache, "Hugging Face hub", evidence.CacheDownload, l).naps(10239, 10239, 9.9).done()
		}},
		{"waits-for-build", want{
			Says:    "Another server builds the same extension; this one waits for its lock file",
			Verdict: rule.Loading, Cause: rule.WaitingForPeer, Strength: rule.Likely, ExitCode: 3,
			Findings: []rule.ID{"waits-for-build"}, Near: []rule.ID{"stale-lock-file", "no-movement"},
			Sentence: []string{"process 555 (python3)", "95 % of a processor"},
		}, func() *evidence.Snapshot {
			works := evidence.FileHolder{PID: 555, Name: "python3", FD: 9, WorkMS: ptr(8550.0), OverMS: ptr(9000.0)}
			return at(vllmServer()).cache(extensions, "torch extensions", evidence.CacheBuild, batonLock(time.Minute, works)).naps(10239, 10239, 9.9).done()
		}},
		{"kernel-build-in-turn", want{
			Says:    "A rank builds, and the other waits in flock for its lock",
			Verdict: rule.Loading, Cause: rule.KernelBuild, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"kernel-build"}, Near: []rule.ID{"no-movement", "stale-lock-file"},
			Sentence: []string{"for process 10239 (worker Worker_TP0)", "Process 10240 (worker Worker_TP1) waits for its lock /root/.cache/flashinfer/x.lock"},
		}, func() *evidence.Snapshot {
			b := vllmServer().process(20000, 10239, "nvcc", "-c", "moe.cu").process(20001, 20000, "cicc", "--arch", "compute_120")
			look := evidence.ThreadLook{State: "S", Syscall: "73 0x9 0x2 0x0 0x0 0x0 0x0 0x7ffc0f00 0x7f0000001000", RunNS: ptr(uint64(1e6)), Slices: ptr(uint64(10))}
			b.frames(map[int]moves{20001: {user: 990, faults: 5000, anon: 10 << 20}}, 0, 0.1, 1, 2.1)
			return b.waits(evidence.Wait{PID: 10240, TID: 10240, A: look, B: look, Blocked: &evidence.Blocked{Kind: evidence.BlockFlock, FD: 9, Object: "/root/.cache/flashinfer/x.lock",
				Wakers: []evidence.Waker{{PID: 10239, Name: "VLLM::Worker_TP0"}}}}).done()
		}},
		{"compilers-stopped", want{
			Says:    "The compilers are stopped, and the rank that waits for the outcome spins: no build",
			Verdict: rule.Stalled, Cause: rule.Paused, Strength: rule.Proved, ExitCode: 4,
			Findings: []rule.ID{"paused"}, Near: []rule.ID{"kernel-build", "stale-lock-file"},
		}, func() *evidence.Snapshot {
			b := vllmServer().process(20000, 10239, "nvcc", "-c", "moe.cu").process(20001, 20000, "cicc", "--arch", "compute_120")
			return b.frames(map[int]moves{10240: {user: 250, system: 500}, 20001: {state: "T"}}, window...).done()
		}},
		{"download", want{
			Says:    "A worker downloads: its unfinished file grows and it writes as much",
			Verdict: rule.Loading, Cause: rule.Download, Strength: rule.Strong, ExitCode: 3,
			Findings: []rule.ID{"download"}, Near: []rule.ID{"download-stalled", "no-movement"},
			Sentence: []string{"ab12.incomplete has 1.0 GiB", "9.5 MiB/s"},
		}, func() *evidence.Snapshot {
			return vllmServer().frames(nil, 0, 0.1, 1, 2.1).cache(hubCache, "Hugging Face hub", evidence.CacheDownload).partial(10239, 1e7).wrote(10239, 1e7).done()
		}},
		{"download-of-another", want{
			Says:    "The same cache, in which another server's download grows: nothing of this one",
			Verdict: rule.Stalled, Cause: rule.NoMovement, Strength: rule.Likely, ExitCode: 4,
			Findings: []rule.ID{"no-movement"}, Near: []rule.ID{"download", "download-stalled"},
		}, func() *evidence.Snapshot {
			return at(vllmServer()).cache(hubCache, "Hugging Face hub", evidence.CacheDownload).partial(555, 1e7).done()
		}},
		{"download-stalled", want{
			Says:    "The file is open and the connection stands, and no byte comes",
			Verdict: rule.Stalled, Cause: rule.DownloadStalled, Strength: rule.Strong, ExitCode: 4,
			Findings: []rule.ID{"download-stalled"}, Near: []rule.ID{"download", "no-movement", "stale-lock-file"},
			Sentence: []string{"10.0.0.9:443", "stays at 1.0 GiB"},
		}, func() *evidence.Snapshot {
			b := at(vllmServer()).cache(hubCache, "Hugging Face hub", evidence.CacheDownload).partial(10239, 0)
			b.s.Sockets.Connections = append(b.s.Sockets.Connections, evidence.Connection{Network: "tcp", Local: "10.0.0.2:41000", Remote: "10.0.0.9:443", State: "ESTABLISHED", Inode: 99, PID: 10239})
			return b.done()
		}},
	}
}

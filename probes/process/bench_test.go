package process

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// One pass of evidence: every thread of every process, then the lock words.
func pass(b *testing.B, r *Reader, procs []evidence.Process, threads int) {
	b.Helper()
	ctx := context.Background()
	seen := 0
	b.ReportAllocs()
	for b.Loop() {
		frames, _, look, run := r.Pass(ctx, procs, LookOptions{})
		if run.Status != evidence.OK {
			b.Fatalf("%+v", run)
		}
		seen = 0
		for _, f := range frames {
			seen += len(f.Threads)
		}
		if seen != threads || len(look.Waits) == 0 {
			b.Fatalf("%d threads and %d waits, want %d threads", seen, len(look.Waits), threads)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(threads), "us/thread")
}

// Eight ranks of 131 threads each, as tensor parallelism on eight GPUs has.
func BenchmarkPass8x131(b *testing.B) {
	r := reader(b)
	var procs []evidence.Process
	for range 8 {
		procs = append(procs, treeOf(b, r, scenario.Start(b, "abba", "128").PID)...)
	}
	pass(b, r, procs, 8*131)
}

func BenchmarkPass5000(b *testing.B) {
	r := reader(b)
	procs := treeOf(b, r, scenario.Start(b, "abba", "4997").PID)
	pass(b, r, procs, 5000)
}

// Look alone, on 5,000 threads.
func BenchmarkLook5000(b *testing.B) {
	r := reader(b)
	procs := treeOf(b, r, scenario.Start(b, "abba", "4997").PID)
	b.ReportAllocs()
	for b.Loop() {
		r.Look(context.Background(), procs, LookOptions{Threads: true})
	}
}

// A frame of counters alone, as it is taken several times a second.
func BenchmarkCounters8x131(b *testing.B) {
	r := reader(b)
	var procs []evidence.Process
	for range 8 {
		procs = append(procs, treeOf(b, r, scenario.Start(b, "abba", "128").PID)...)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Look(context.Background(), procs, LookOptions{})
	}
}

func BenchmarkTree(b *testing.B) {
	r := reader(b)
	pid := scenario.Start(b, "abba").PID
	b.ReportAllocs()
	for b.Loop() {
		r.Tree(context.Background(), pid, TreeOptions{})
	}
}

func BenchmarkRefresh(b *testing.B) {
	r := reader(b)
	procs := treeOf(b, r, scenario.Start(b, "abba").PID)
	b.ReportAllocs()
	for b.Loop() {
		r.Refresh(context.Background(), procs, TreeOptions{})
	}
}

// The same tree as a Python sampler sees it: eight ranks of 131 Python threads.
// Where py-spy is installed (in PATH, or named by PYSPY), its time on the same
// tree is reported beside ours.
func BenchmarkPassBesidePySpy(b *testing.B) {
	python, err := exec.LookPath("python3")
	if err != nil {
		b.Skip("python3 is not installed")
	}
	cmd := exec.Command(python, "../../testdata/scenarios/ranks.py")
	s := scenario.StartCmd(b, nil, cmd)
	r := reader(b)
	procs := treeOf(b, r, s.PID)
	b.Cleanup(func() {
		for _, p := range procs[1:] {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	})
	if len(procs) != 9 {
		b.Fatalf("%d processes", len(procs))
	}
	for b.Loop() {
		r.Pass(context.Background(), procs, LookOptions{})
	}
	ours := float64(b.Elapsed().Milliseconds()) / float64(b.N)
	begin := time.Now()
	for range 10 {
		r.Pass(context.Background(), procs, LookOptions{Stacks: true})
	}
	b.ReportMetric(float64(time.Since(begin).Milliseconds())/10, "ms-with-stacks")
	pyspy := os.Getenv("PYSPY")
	if pyspy == "" {
		pyspy, _ = exec.LookPath("py-spy")
	}
	if pyspy == "" {
		return
	}
	best := time.Hour
	for range 3 {
		begin := time.Now()
		if out, err := exec.Command(pyspy, "dump", "--subprocesses", "--pid", strconv.Itoa(s.PID)).CombinedOutput(); err != nil {
			b.Skipf("py-spy: %v\n%s", err, out)
		}
		best = min(best, time.Since(begin))
	}
	b.ReportMetric(float64(best.Milliseconds()), "py-spy-ms")
	b.ReportMetric(ours/float64(best.Milliseconds()), "of-py-spy")
}

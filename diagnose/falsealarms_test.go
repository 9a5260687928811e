package diagnose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// healthy are programs under load that are never dead.
var healthy = []struct {
	name  string
	start func(t *testing.T) *scenario.Process
}{
	{"C mutexes", healthyC("mutexes")},
	{"C recursive mutexes", healthyC("recursive")},
	{"C errorcheck mutexes", healthyC("errorcheck")},
	{"C robust mutexes", healthyC("robust")},
	{"C priority inheritance", healthyC("pi")},
	{"C mutexes of two processes", healthyC("shared")},
	{"C mutexes with time-outs", healthyC("timed")},
	{"C condition variables", healthyC("conditions")},
	{"C rwlocks with readers", healthyC("rwlocks")},
	{"C semaphores", healthyC("semaphores")},
	{"C joins of short threads", healthyC("joins")},
	{"C pipe between processes", healthyC("pipes")},
	{"C TCP between processes", healthyC("connections")},
	{"C 131 threads in order", func(t *testing.T) *scenario.Process { return scenario.Start(t, "ordered") }},
	{"Go", func(t *testing.T) *scenario.Process { return built(t, "go", "build", "-o", "OUT", "main.go") }},
	{"Rust", func(t *testing.T) *scenario.Process { return built(t, "rustc", "-O", "-o", "OUT", "healthy.rs") }},
	{"Java", func(t *testing.T) *scenario.Process {
		dir := t.TempDir()
		command(t, "javac", "-d", dir, "Healthy.java")
		return scenario.StartCmd(t, nil, exec.Command("java", "-cp", dir, "Healthy"))
	}},
	{"Python locks and RLocks", healthyPython("locks")},
	{"Python GIL", healthyPython("gil")},
	{"Python queues", healthyPython("queue")},
	{"Python pre-fork server", healthyPython("prefork")},
}

func healthyC(kind string) func(t *testing.T) *scenario.Process {
	return func(t *testing.T) *scenario.Process { return scenario.Start(t, "healthy", kind) }
}

func healthyPython(kind string) func(t *testing.T) *scenario.Process {
	return func(t *testing.T) *scenario.Process {
		python, err := exec.LookPath("python3")
		if err != nil {
			t.Skip("no python3")
		}
		return scenario.StartCmd(t, nil, exec.Command(python, "../testdata/scenarios/healthy/healthy.py", kind))
	}
}

// command runs a compiler in the folder of the healthy programs.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("no " + name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = "../testdata/scenarios/healthy"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func built(t *testing.T, name string, args ...string) *scenario.Process {
	t.Helper()
	out := filepath.Join(t.TempDir(), "healthy")
	for i := range args {
		if args[i] == "OUT" {
			args[i] = out
		}
	}
	command(t, name, args...)
	return scenario.StartCmd(t, nil, exec.Command(out))
}

// TestFalseAlarms takes samples of healthy programs under load, each a pair of
// readings as a diagnosis takes them but without the pause in between, which
// makes it harder, and counts those in which a circle, an orphan or a closed
// process is seen. There may be none. WHYHANG_SAMPLES sets how many are taken
// in all.
func TestFalseAlarms(t *testing.T) {
	samples := 20 * len(healthy)
	if n, err := strconv.Atoi(os.Getenv("WHYHANG_SAMPLES")); err == nil {
		samples = n
	}
	each := (samples + len(healthy) - 1) / len(healthy)
	all, alarms, skipped := 0, 0, 0
	for _, h := range healthy {
		ok := t.Run(h.name, func(t *testing.T) {
			n, bad, waits := sample(t, h.start(t).PID, each)
			all, alarms = all+n, alarms+bad
			t.Logf("%d samples, %d false alarms, %.1f waits a sample with a known waker", n, bad, float64(waits)/float64(n))
		})
		if !ok {
			t.Errorf("%s failed", h.name)
		}
	}
	fmt.Printf("false alarms: %d in %d samples over %d healthy programs\n", alarms, all, len(healthy)-skipped)
}

// sample takes pairs of readings and judges each.
func sample(t *testing.T, pid, n int) (taken, alarms, waits int) {
	t.Helper()
	r, err := process.NewReader("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	procs, _ := r.Tree(ctx, pid, process.TreeOptions{})
	s := &evidence.Snapshot{Target: evidence.Target{PID: pid, State: evidence.TargetAlive}, Processes: procs}
	s.Host = r.Host()
	for ; taken < n && ctx.Err() == nil; taken++ {
		s.Waits, s.Frames = nil, nil
		for range 2 {
			frames, _, look, _ := r.Pass(ctx, procs, process.LookOptions{Stacks: true})
			s.Waits = append(s.Waits, look)
			s.Frames = append(s.Frames, evidence.Frame{At: look.At, Processes: frames})
		}
		g := &facts.Of(s).WaitGraph
		waits += len(g.Waiters)
		dead := len(g.ClosedAt[facts.Sure])
		for _, d := range g.Dead {
			dead += len(d.Circles) + len(d.Orphans)
		}
		if j := rules.Judge(s); dead == 0 && j.Verdict != rule.Deadlocked {
			continue
		}
		alarms++
		if alarms == 1 {
			path := filepath.Join(os.TempDir(), fmt.Sprintf("whyhang-false-alarm-%d.json.gz", pid))
			err := Save(path, s)
			t.Errorf("a healthy program is called dead: %+v, closed %v (snapshot %s, %v)", g.Dead, g.ClosedAt[facts.Sure], path, err)
		}
	}
	return taken, alarms, waits
}

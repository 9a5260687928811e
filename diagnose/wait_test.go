package diagnose

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// starting is a start of vLLM, played by testdata/scenarios/starts.py.
type starting struct {
	dir  string
	port int
}

func newStarting(t testing.TB) starting {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	b, err := os.ReadFile("../testdata/scenarios/starts.py")
	if err != nil {
		t.Fatal(err)
	}
	s := starting{dir: t.TempDir(), port: freePort(t)}
	if err := os.WriteFile(filepath.Join(s.dir, "vllm"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(s.dir, "model")
	if err := os.Mkdir(model, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(model, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(400 << 20); err != nil {
		t.Fatal(err)
	}
	return s
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start starts it with these steps; its output is a log file.
func (s starting) start(t testing.TB, steps string) *scenario.Process {
	t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	return s.startInto(t, log, steps)
}

// startInto is start with another place for its output.
func (s starting) startInto(t testing.TB, log *os.File, steps string) *scenario.Process {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(s.dir, "vllm"), "serve", filepath.Join(s.dir, "model"), "--port", strconv.Itoa(s.port))
	cmd.Env = append(os.Environ(), "START_STEPS="+steps, "READY_FD=3")
	cmd.Stdout, cmd.Stderr = log, log
	return scenario.StartCmd(t, nil, cmd)
}

// waited waits for a process, and keeps the verdicts of the looks.
func waited(t *testing.T, o WaitOptions) (*rules.Judgement, map[rule.Verdict]int) {
	t.Helper()
	seen := map[rule.Verdict]int{}
	o.Tell = func(s WaitStatus) { seen[s.Judgement.Verdict]++ }
	j, err := Wait(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return j, seen
}

func patient(pid int, timeout time.Duration) WaitOptions {
	return WaitOptions{Options: quick(pid), Timeout: timeout}
}

// It loads, stands still for longer than a moment, goes on, and serves: the
// wait ends with the ready server, and holds the evidence of the stall.
func TestWaitUntilReady(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	p := s.start(t, "read=160/20;stand=22;read=160/20;serve")
	j, seen := waited(t, patient(p.PID, 5*time.Minute))
	expect(t, j, rule.Ready, rule.Idle)
	if j.Case.Check == nil {
		t.Error("it was not asked")
	}
	if seen[rule.Loading] == 0 || seen[rule.Deadlocked]+seen[rule.Broken] > 0 {
		t.Errorf("looks %v", seen)
	}
	w := j.Case.Waited
	if len(w.Stalls) != 1 || w.Stalls[0].Ended == nil {
		t.Fatalf("stalls %+v", w.Stalls)
	}
	stall := w.Stalls[0]
	if lasted := stall.Ended.Sub(stall.Began); lasted < 15*time.Second || lasted > 40*time.Second {
		t.Errorf("it lasted %s", lasted)
	}
	if then := rules.Judge(stall.Snapshot); then.Verdict != rule.Stalled {
		t.Errorf("the evidence says %s", then.Verdict)
	}
}

// With --passive its own word is enough, and not a byte is sent.
func TestWaitPassive(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	p := s.start(t, "read=60/20;serve")
	o := patient(p.PID, 2*time.Minute)
	o.Passive = true
	j, _ := waited(t, o)
	expect(t, j, rule.Ready, rule.Idle)
	if j.Case.Check != nil {
		t.Error("it was asked")
	}
}

// Servers that cannot become ready any more end the wait early.
func TestWaitForNothing(t *testing.T) {
	t.Parallel()
	t.Run("deadlocked", func(t *testing.T) {
		j, _ := waited(t, patient(scenario.Start(t, "abba", "10").PID, 2*time.Minute))
		expect(t, j, rule.Deadlocked, rule.LockCycle)
	})
	t.Run("ends", func(t *testing.T) {
		p := newStarting(t).start(t, "read=60/20;exit=7")
		go func() { _ = p.Cmd.Wait() }()
		j, _ := waited(t, patient(p.PID, 2*time.Minute))
		expect(t, j, rule.Gone, rule.Exited)
	})
	t.Run("answers nobody", func(t *testing.T) {
		p := newStarting(t).start(t, "read=20/20;mute")
		j, _ := waited(t, patient(p.PID, 3*time.Minute))
		expect(t, j, rule.Unresponsive, rule.AcceptStuck)
	})
	t.Run("no such process", func(t *testing.T) {
		j, _ := waited(t, patient(1<<22-1, time.Minute))
		expect(t, j, rule.Gone, rule.NoProcess)
	})
}

// A part ends while whyhang waits, its parent reaps it and no log names it: a
// close look does not know that it was ever there, and the wait ends all the same.
func TestWaitSawAPartEnd(t *testing.T) {
	t.Parallel()
	s, kids := engineTree(t, "reaps", 2)
	o := patient(s.PID, 2*time.Minute)
	o.Passive = true
	killed := false
	o.Tell = func(s WaitStatus) {
		if !killed && s.Note == "" && s.Judgement.Verdict == rule.Loading {
			killed = true
			_ = syscall.Kill(kids[1], syscall.SIGKILL)
		}
	}
	j, err := Wait(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, j, rule.Broken, rule.DeadChild)
	if !killed || time.Since(j.Case.Waited.Since) >= o.Timeout {
		t.Errorf("killed %v, waited until the end", killed)
	}
}

// A server that stands still is waited for as long as was asked: it may go on.
func TestWaitTimeIsUp(t *testing.T) {
	t.Parallel()
	p := newStarting(t).start(t, "read=20/20;stand=300")
	begin := time.Now()
	j, _ := waited(t, patient(p.PID, 20*time.Second))
	expect(t, j, rule.Stalled, rule.NoMovement)
	if took := time.Since(begin); took < 20*time.Second {
		t.Errorf("gave up after %s", took)
	}
	if len(j.Case.Waited.Stalls) != 1 || j.Case.Waited.Stalls[0].Ended != nil {
		t.Errorf("stalls %+v", j.Case.Waited.Stalls)
	}
}

// Its place is taken by another process with the same command line.
func TestWaitFollowRestart(t *testing.T) {
	t.Parallel()
	s := newStarting(t)
	first := s.start(t, "read=60/20;exit=1")
	again := make(chan *scenario.Process, 1)
	go func() {
		_ = first.Cmd.Wait()
		time.Sleep(time.Second)
		again <- s.start(t, "read=40/20;serve")
	}()
	o := patient(first.PID, 3*time.Minute)
	o.FollowRestart = true
	j, _ := waited(t, o)
	expect(t, j, rule.Ready, rule.Idle)
	second := <-again
	if r := j.Case.Waited.Restarts; j.Case.Target.PID != second.PID || len(r) != 1 || r[0].PID != first.PID || r[0].NewPID != second.PID {
		t.Errorf("target %d, second %d, restarts %+v", j.Case.Target.PID, second.PID, r)
	}
}

// BenchmarkWait is what waiting costs, in processor time per time waited.
func BenchmarkWait(b *testing.B) {
	screenShare, closeShare = 0.002, 0.001 // as they are outside of the tests
	p := newStarting(b).start(b, "stand=3600")
	o := patient(p.PID, time.Duration(b.N)*10*time.Minute)
	before, begin := cpuUsed(), time.Now()
	if _, err := Wait(context.Background(), o); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(100*float64(cpuUsed()-before)/float64(time.Since(begin)), "%-of-a-core")
}

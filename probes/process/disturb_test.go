package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
)

// A reading leaves no trace in the threads that it reads: none of them runs,
// not for a nanosecond.
func TestPassDisturbsNobody(t *testing.T) {
	s := scenario.Start(t, "abba")
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	before := schedstats(t, s.PID)
	for range 20 {
		r.Pass(context.Background(), procs, LookOptions{Stacks: true})
	}
	for tid, was := range schedstats(t, s.PID) {
		if before[tid] != was && tid != s.PID { // the main thread is in poll
			t.Errorf("thread %d ran: %q became %q", tid, before[tid], was)
		}
	}
	if len(before) < 131 {
		t.Errorf("%d threads, want at least 131", len(before))
	}
}

func schedstats(t *testing.T, pid int) map[int]string {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	all := map[int]string{}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		tid, _ := strconv.Atoi(task.Name())
		all[tid] = string(b)
	}
	return all
}

// BenchmarkHeartbeat prints the longest gap in the beat of a thread that beats
// every millisecond, while its process is read: by nobody, which is the noise of
// the machine, by whyhang, and by py-spy and gdb where they are installed.
func BenchmarkHeartbeat(b *testing.B) {
	python, err := exec.LookPath("python3")
	if err != nil {
		b.Skip("no python3")
	}
	cmd := exec.Command(python, "../../testdata/scenarios/heartbeat.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	r := reader(b)
	procs, _ := r.Tree(context.Background(), cmd.Process.Pid, TreeOptions{})
	for _, by := range []struct {
		name string
		read func() error
	}{
		{"nobody", func() error { time.Sleep(50 * time.Millisecond); return nil }},
		{"whyhang", func() error { r.Pass(context.Background(), procs, LookOptions{Stacks: true}); return nil }},
		{"py-spy", func() error { return exec.Command("py-spy", "dump", "--pid", pid).Run() }},
		{"gdb", func() error { return exec.Command("gdb", "-p", pid, "-batch", "-ex", "thread apply all bt 1").Run() }},
	} {
		b.Run(by.name, func(b *testing.B) {
			if by.name != "nobody" && by.name != "whyhang" {
				if _, err := exec.LookPath(by.name); err != nil {
					b.Skip("no " + by.name)
				}
			}
			longestGap(b, in, lines)
			n := 0
			for b.Loop() {
				if err := by.read(); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(longestGap(b, in, lines), "ms-longest-gap")
		})
	}
}

// longestGap asks for the longest gap since it was asked last.
func longestGap(b *testing.B, in io.Writer, lines *bufio.Reader) float64 {
	b.Helper()
	if _, err := io.WriteString(in, "\n"); err != nil {
		b.Fatal(err)
	}
	line, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	ms, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	if err != nil {
		b.Fatal(err)
	}
	return ms
}

package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/gpu/nvmlstub"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules/rule"
)

// loggingServer starts a scenario whose standard output is a log file that
// begins with the incident's log.
func loggingServer(t *testing.T, name string, args ...string) (*scenario.Process, string) {
	t.Helper()
	b, err := os.ReadFile("../testdata/logs/incident-sglang.log")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if _, err := log.Write(b); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(scenario.Build(t, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "READY_FD=3")
	return scenario.StartCmd(t, nil, cmd), path
}

func TestPaused(t *testing.T) {
	s := scenario.Start(t, "idle_http")
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(s.PID, syscall.SIGCONT) }()
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.Paused)
	if len(j.Next) == 0 || j.Next[0].Command != "kill -CONT "+strconv.Itoa(s.PID) {
		t.Errorf("next %+v", j.Next)
	}
	if j.Case.Check != nil {
		t.Error("a paused server was asked")
	}
}

// The GPU driver's moods change the report and never the verdict.
func TestGPUDriver(t *testing.T) {
	dir := nvmlstub.Build(t)
	s := scenario.Start(t, "abba", "10")
	for _, tc := range []struct {
		plays  string
		status evidence.Status
		says   string
		gpus   int
	}{
		{"gpus=8;used_gb=76;util=0", evidence.OK, "", 8},
		{"hang=nvmlInit_v2", evidence.Timeout, "driver does not answer", 0},
		{"crash=nvmlInit_v2", evidence.Failed, "nvmlInit_v2", 0},
		{"driver=notloaded", evidence.Unsupported, "", 0},
	} {
		t.Run(tc.plays, func(t *testing.T) {
			nvmlstub.Use(t, dir, tc.plays)
			begin := time.Now()
			j := diagnosed(t, quick(s.PID))
			if took := time.Since(begin); took > 15*time.Second {
				t.Errorf("took %s", took)
			}
			expect(t, j, rule.Deadlocked, rule.LockCycle)
			for _, p := range j.Case.Probes {
				if p.Name == evidence.ProbeGPU && (p.Status != tc.status || !strings.Contains(p.Detail, tc.says)) {
					t.Errorf("%+v", p)
				}
			}
			gpus := 0
			if j.Case.GPU != nil {
				gpus = len(j.Case.GPU.Devices)
			}
			if gpus != tc.gpus {
				t.Errorf("%d GPUs", gpus)
			}
			for _, f := range j.Case.Frames {
				for _, g := range f.GPUs {
					if g.MemoryUsedBytes == nil || *g.MemoryUsedBytes/1e9 < 75 || g.UtilPercent == nil || *g.UtilPercent != 0 {
						t.Errorf("%+v", g)
					}
				}
			}
		})
	}
}

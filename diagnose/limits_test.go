package diagnose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// fired tells whether a rule is among the findings.
func fired(j *rules.Judgement, id rule.ID) bool {
	return slices.ContainsFunc(j.Findings, func(f rule.Finding) bool { return f.Rule == id })
}

// A server in a frozen group, in one whose parent is frozen, and its twin in the
// same group thawed.
func TestFrozen(t *testing.T) {
	for _, kind := range []struct{ name, controller, file, freeze, thaw, arrived, says string }{
		{"version 1", "freezer", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"},
		{"version 2", "", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			dir := cgroup(t, kind.controller)
			inner := filepath.Join(dir, "inner")
			if err := os.Mkdir(inner, 0o755); err != nil {
				t.Skip("no groups in groups here: " + err.Error())
			}
			s := scenario.Start(t, "idle_http")
			t.Cleanup(func() { s.End(); removeGroup(t, inner) })
			put(t, inner, s.PID)
			o := quick(s.PID)
			o.Passive, o.Window = true, 1500*time.Millisecond
			expect(t, diagnosed(t, o), rule.Unknown, rule.NotAsked)

			for _, where := range []string{inner, dir} {
				t.Cleanup(func() { setting(t, where, kind.file, kind.thaw) })
				setting(t, where, kind.file, kind.freeze)
				until(t, "frozen", contains(filepath.Join(inner, kind.arrived), kind.says))
				o := quick(s.PID)
				j := diagnosed(t, o)
				expect(t, j, rule.Stalled, rule.Paused)
				want := "echo " + kind.thaw + " > " + filepath.Join(where, kind.file)
				if j.Strength != rule.Proved || !fired(j, "frozen") || len(j.Next) == 0 || j.Next[0].Command != want {
					t.Errorf("%s, %+v, want %q", j.Strength, j.Next, want)
				}
				if j.Case.Check != nil {
					t.Error("a frozen server was asked")
				}
				setting(t, where, kind.file, kind.thaw)
				until(t, "thawed", func() bool { return !contains(filepath.Join(inner, kind.arrived), kind.says)() })
			}
			expect(t, diagnosed(t, o), rule.Unknown, rule.NotAsked)
		})
	}
}

// A tracer that holds the server, and one that only watches it.
func TestTraced(t *testing.T) {
	for _, how := range []string{"stops", "watches"} {
		t.Run(how, func(t *testing.T) {
			s := scenario.Start(t, "idle_http")
			cmd := exec.Command(scenario.Build(t, "tracer"), strconv.Itoa(s.PID), how)
			var says strings.Builder
			cmd.Stderr = &says
			tracer := mayTrace(t, cmd, &says)
			o := quick(s.PID)
			o.Passive = how == "watches"
			j := diagnosed(t, o)
			if how == "watches" {
				expect(t, j, rule.Unknown, rule.NotAsked)
				if p := j.Case.Processes[0]; p.TracerPID != tracer.PID {
					t.Errorf("traced by %d %q, in truth %d", p.TracerPID, p.TracerName, tracer.PID)
				}
				return
			}
			expect(t, j, rule.Stalled, rule.Paused)
			if !strings.Contains(j.Sentence, strconv.Itoa(tracer.PID)+" (tracer)") {
				t.Errorf("does not name the tracer %d: %s", tracer.PID, j.Sentence)
			}
		})
	}
}

// mayTrace starts the tracer; where tracing is forbidden the test is skipped.
func mayTrace(t *testing.T, cmd *exec.Cmd, says *strings.Builder) *scenario.Process {
	t.Helper()
	if b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && strings.TrimSpace(string(b)) != "0" && os.Geteuid() != 0 {
		t.Skip("only root may trace here (Yama)")
	}
	return scenario.StartCmd(t, nil, cmd)
}

// looksLikeVLLM starts a server whose command line is vLLM's, and its helper.
func looksLikeVLLM(t *testing.T, mib string) (server *scenario.Process, helper int) {
	t.Helper()
	cmd := exec.Command(scenario.Build(t, "helper_dies"))
	cmd.Args = []string{"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/none"}
	cmd.Env = append(os.Environ(), "HELPER_MIB="+mib)
	s := scenario.StartCmd(t, nil, cmd)
	helper, err := strconv.Atoi(s.Ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(helper, syscall.SIGKILL) })
	return s, helper
}

// A helper in a memory group of 64 MB takes 200 MB and is killed by the kernel,
// before or while whyhang looks; its server waits at the socket.
func TestHelperKilledForMemory(t *testing.T) {
	for _, when := range []string{"before", "in sight"} {
		t.Run(when, func(t *testing.T) {
			dir := cgroup(t, "memory")
			setting(t, dir, "memory.limit_in_bytes", strconv.Itoa(64<<20))
			s, helper := looksLikeVLLM(t, "200")
			put(t, dir, s.PID, helper)
			take := func() {
				if _, err := s.Stdin.Write([]byte("g")); err != nil {
					t.Error(err)
				}
			}
			if when == "before" {
				take()
				until(t, "killed", contains("/proc/"+s.Ready+"/stat", ") Z "))
			} else {
				time.AfterFunc(2*time.Second, take)
			}
			j := diagnosed(t, quick(s.PID))
			expect(t, j, rule.Broken, rule.OOMKilled)
			if j.Strength < rule.Strong || fired(j, "dead-child") || !strings.Contains(j.Sentence, "engine-core") || !strings.Contains(j.Sentence, "(process "+s.Ready+")") {
				t.Errorf("%s: %s", j.Strength, j.Sentence)
			}
			// Root may read the kernel's log, but for containers.
			if log := j.Case.Kernel.Log; log != nil && j.Strength != rule.Proved {
				t.Errorf("only %s with the kernel's log at hand: %+v", j.Strength, log)
			}
			t.Logf("%s (%s), took %.0f ms", j.Sentence, j.Strength, j.Case.TookMS)
		})
	}
}

// The twin: the same exit status by kill -9, in the same group and in none, while
// whyhang looks and before.
func TestHelperKilledByHand(t *testing.T) {
	for _, when := range []string{"before, in a group", "in sight, in a group", "before", "in sight"} {
		inSight, grouped := strings.HasPrefix(when, "in sight"), strings.HasSuffix(when, "group")
		s, helper := looksLikeVLLM(t, "1")
		if grouped && os.Geteuid() == 0 {
			dir := cgroup(t, "memory")
			setting(t, dir, "memory.limit_in_bytes", strconv.Itoa(64<<20))
			put(t, dir, s.PID, helper)
			t.Cleanup(s.End) // before the group is removed
		}
		kill := func() {
			if err := syscall.Kill(helper, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
		if inSight {
			time.AfterFunc(2*time.Second, kill)
		} else {
			kill()
			until(t, "killed", contains("/proc/"+s.Ready+"/stat", ") Z "))
		}
		j := diagnosed(t, quick(s.PID))
		if inSight {
			expect(t, j, rule.Broken, rule.DeadChild)
		}
		if j.Cause == rule.OOMKilled || fired(j, "oom-killed") {
			t.Errorf("%s: %s", when, j.Sentence)
		}
	}
}

// A quota of 5 % of a processor: with no movement it is starved, with memory that
// grows it loads and is warned of.
func TestStarvedByQuota(t *testing.T) {
	for _, tc := range []struct {
		name    string
		args    []string
		verdict rule.Verdict
		cause   rule.Cause
	}{
		{"spins", []string{"-", "0"}, rule.Stalled, rule.Starved},
		{"converts in place", []string{"PATH", "64", "in-place"}, rule.Stalled, rule.Starved},
		{"converts", []string{"PATH", "64"}, rule.Loading, rule.WeightsConvert},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := cgroup(t, "cpu")
			setting(t, dir, "cpu.cfs_quota_us", "5000")
			args := slices.Clone(tc.args)
			if args[0] == "PATH" {
				args[0] = filepath.Join(t.TempDir(), "model.safetensors")
			}
			s := scenario.Start(t, "convert", args...)
			t.Cleanup(s.End)
			put(t, dir, s.PID)
			time.Sleep(time.Second) // the memory it took before is no movement
			j := diagnosed(t, quick(s.PID))
			expect(t, j, tc.verdict, tc.cause)
			l := &j.Case.Limits
			t.Logf("%s; ran %.3f, waited %.3f, throttled %+v, took %.0f ms", j.Sentence, l.Ran, l.Waited, l.Throttled, j.Case.TookMS)
			warned := slices.ContainsFunc(j.Warnings, func(w rule.Warning) bool { return w.Code == "starved" })
			if warned != (tc.verdict == rule.Loading) {
				t.Errorf("warnings %+v", j.Warnings)
			}
		})
	}
	// Without a quota the same loop converts, as far as can be told.
	s := scenario.Start(t, "convert", filepath.Join(t.TempDir(), "model.safetensors"), "64", "in-place")
	j := diagnosed(t, quick(s.PID))
	if fired(j, "starved") {
		t.Errorf("%s", j.Sentence)
	}
}

// No quota: a hundred others take the processors. All of them together are in a
// group that yields to everybody else on the machine.
func TestStarvedByCrowd(t *testing.T) {
	dir := cgroup(t, "cpu")
	setting(t, dir, "cpu.shares", "2")
	s := scenario.Start(t, "convert", filepath.Join(t.TempDir(), "model.safetensors"), "64", "in-place")
	t.Cleanup(s.End)
	for range 100 {
		other := scenario.Start(t, "convert", "-", "0")
		t.Cleanup(other.End)
		put(t, dir, other.PID)
	}
	put(t, dir, s.PID)
	time.Sleep(time.Second)
	j := diagnosed(t, quick(s.PID))
	l := &j.Case.Limits
	t.Logf("%s; ran %.3f, waited %.3f, pressure %+v", j.Sentence, l.Ran, l.Waited, l.CPUPressure)
	if l.CPUPressure == nil {
		t.Skip("the kernel keeps no pressure")
	}
	expect(t, j, rule.Stalled, rule.Starved)
	if !strings.Contains(j.Sentence, "crowded machine") {
		t.Error(j.Sentence)
	}
}

// A log on a full file system: every line is lost. Its twin has the same full
// file system and does not write.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	for _, tc := range []struct{ mode, warning string }{{"logs", ""}, {"idle", "bytes"}, {"inodes", "inodes"}} {
		t.Run(tc.mode, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(scenario.Build(t, "full_disk"), dir, tc.mode)
			cmd.Env = append(os.Environ(), "READY_FD=3", "HOME="+dir)
			null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			cmd.Stdout = null
			s := scenario.StartCmd(t, nil, cmd)
			j := diagnosed(t, quick(s.PID))
			if tc.mode == "logs" {
				expect(t, j, rule.Broken, rule.DiskFull)
				if !strings.Contains(j.Sentence, "every write call of process "+strconv.Itoa(s.PID)+" fails") {
					t.Error(j.Sentence)
				}
				return
			}
			expect(t, j, rule.Unknown, rule.NotAServer)
			if !slices.ContainsFunc(j.Warnings, func(w rule.Warning) bool {
				return w.Code == "full-disk" && strings.Contains(w.Says, "no "+tc.warning+" left") && strings.Contains(w.Detail, dir)
			}) {
				t.Errorf("warnings %+v; %+v", j.Warnings, j.Case.Kernel.FileSystems)
			}
		})
	}
}

// What the machine does not let us read is said, and nothing else breaks.
func TestLimitsAreEvidence(t *testing.T) {
	s := scenario.Start(t, "idle_http")
	o := quick(s.PID)
	o.Passive, o.Window = true, 1200*time.Millisecond
	j := diagnosed(t, o)
	if j.Case.Kernel == nil || len(j.Case.Kernel.FileSystems) == 0 {
		t.Fatalf("%+v", j.Case.Kernel)
	}
	seen := map[evidence.ProbeName]evidence.ProbeRun{}
	for _, p := range j.Case.Probes {
		seen[p.Name] = p
	}
	for _, name := range []evidence.ProbeName{evidence.ProbeCgroup, evidence.ProbeKernel} {
		if p := seen[name]; p.Status == "" || p.Status == evidence.Denied && p.Hint == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for n, f := range j.Case.Frames {
		if f.Kernel == nil || f.Kernel.MemAvailableBytes == nil || *f.Kernel.MemAvailableBytes == 0 {
			t.Errorf("frame %d: %+v", n, f.Kernel)
		}
	}
}

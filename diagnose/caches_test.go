package diagnose

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

// cacheDir is a home with the caches of one server, without any of the user's
// own.
func cacheDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "ext"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// cacheServer starts a mode of caches.py that looks like vLLM.
func cacheServer(t *testing.T, dir, mode string, env ...string) *scenario.Process {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	script, err := os.ReadFile("../testdata/scenarios/caches.py")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "vllm")
	if err := os.WriteFile(name, script, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, name, "serve", "org/model")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TORCH_EXTENSIONS_DIR=" + dir, "HF_HUB_CACHE=" + filepath.Join(dir, "hub"),
		"CACHES_MODE=" + mode, "CACHES_DIR=" + dir}, env...)
	return scenario.StartCmd(t, nil, cmd)
}

// yesterday makes a lock file that a build has left behind.
func yesterday(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// compilers puts executables called nvcc and cicc into dir.
func compilers(t *testing.T, dir string) {
	t.Helper()
	b, err := os.ReadFile(scenario.Build(t, "compiler"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nvcc", "cicc"} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func found(j *rules.Judgement, id rule.ID) *rule.Finding {
	for i := range j.Findings {
		if j.Findings[i].Rule == id {
			return &j.Findings[i]
		}
	}
	return nil
}

// S1: a build that was killed yesterday left its lock file.
func TestStaleLockFile(t *testing.T) {
	dir := cacheDir(t)
	lock := filepath.Join(dir, "ext", "lock")
	yesterday(t, lock)
	s := cacheServer(t, dir, "wait")
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Deadlocked, rule.StaleLockFile)
	if j.Strength != rule.Strong || !strings.Contains(j.Sentence, lock) || !strings.Contains(j.Sentence, "24.0 h old") {
		t.Errorf("%s: %s", j.Strength, j.Sentence)
	}
	if len(j.Next) < 2 || j.Next[1].Command != "rm "+rule.Quoted(lock) || j.Next[1].Risk == rule.RiskNone {
		t.Errorf("next %+v", j.Next)
	}
	if len(j.Carried.Culprits) != 1 || j.Carried.Culprits[0].PID != s.PID {
		t.Errorf("culprits %+v", j.Carried.Culprits)
	}
	// What the report says to do ends it.
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	o := quick(s.PID)
	if j := diagnosed(t, o); found(j, "stale-lock-file") != nil {
		t.Errorf("the lock file is gone: %s", j.Sentence)
	}
}

// The same below a home directory: Python's own stack says who waits.
func TestStaleLockFileBelowHome(t *testing.T) {
	dir := cacheDir(t)
	lock := filepath.Join(dir, ".cache", "torch_extensions", "py311_cu128", "ext", "lock")
	yesterday(t, lock)
	s := cacheServer(t, dir, "wait", "TORCH_EXTENSIONS_DIR=", "CACHES_LOCK="+lock)
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Deadlocked, rule.StaleLockFile)
}

// Twins of the stale lock file: they look alike, and are none.
func TestNoStaleLockFile(t *testing.T) {
	for _, tc := range []struct {
		name  string
		start func(t *testing.T, dir string) *scenario.Process
		v     rule.Verdict
		c     rule.Cause
		says  string
	}{
		{"a build in another process", func(t *testing.T, dir string) *scenario.Process {
			cacheServer(t, dir, "hold")
			return cacheServer(t, dir, "wait")
		}, rule.Loading, rule.WaitingForPeer, "holds the lock"},
		{"an old lock below home, and naps for another reason", func(t *testing.T, dir string) *scenario.Process {
			yesterday(t, filepath.Join(dir, ".cache", "torch_extensions", "py311_cu128", "ext", "lock"))
			return cacheServer(t, dir, "rest", "TORCH_EXTENSIONS_DIR=")
		}, rule.Stalled, rule.NoMovement, ""},
		{"an old lock where it was told to build, and naps for a peer by Python's own stack", func(t *testing.T, dir string) *scenario.Process {
			yesterday(t, filepath.Join(dir, "ext", "lock"))
			return cacheServer(t, dir, "peer")
		}, rule.Stalled, rule.NoMovement, ""},
		{"an old lock of the hub", func(t *testing.T, dir string) *scenario.Process {
			yesterday(t, filepath.Join(dir, "hub", ".locks", "models--x", "abc.lock"))
			return cacheServer(t, dir, "rest")
		}, rule.Stalled, rule.NoMovement, ""},
		{"a lock file that is new and was not made by file_baton", func(t *testing.T, dir string) *scenario.Process {
			s := cacheServer(t, dir, "wait")
			time.Sleep(2100 * time.Millisecond)
			return s
		}, rule.Stalled, rule.NoMovement, ""},
		{"ranks that build", func(t *testing.T, dir string) *scenario.Process {
			compilers(t, dir)
			return cacheServer(t, dir, "baton")
		}, rule.Loading, rule.KernelBuild, "processes wait for its lock"}, // on a crowded machine not all three are seen to nap in rhythm
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := cacheDir(t)
			if strings.HasPrefix(tc.name, "a lock file") {
				if err := os.WriteFile(filepath.Join(dir, "ext", "lock"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			j := diagnosed(t, quick(tc.start(t, dir).PID))
			expect(t, j, tc.v, tc.c)
			if f := found(j, "stale-lock-file"); f != nil {
				t.Errorf("%s", f.Says)
			}
			if !strings.Contains(j.Sentence, tc.says) {
				t.Errorf("no %q: %s", tc.says, j.Sentence)
			}
		})
	}
}

// S2: rank 0 builds, the others wait in flock, or try it again and again; and
// the twin, in which the compilers are stopped.
func TestKernelBuild(t *testing.T) {
	for _, mode := range []string{"build", "filelock"} {
		t.Run(mode, func(t *testing.T) { kernelBuild(t, mode) })
	}
}

func kernelBuild(t *testing.T, mode string) {
	dir := cacheDir(t)
	compilers(t, dir)
	s := cacheServer(t, dir, mode)
	time.Sleep(300 * time.Millisecond) // nvcc has started cicc
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Loading, rule.KernelBuild)
	for _, want := range []string{"cicc (process ", fmt.Sprintf("for process %d", s.PID), " processes wait for its lock", "build.lock"} {
		if !strings.Contains(j.Sentence, want) {
			t.Errorf("no %q: %s", want, j.Sentence)
		}
	}
	stopped := 0
	for _, p := range j.Case.Processes {
		if p.Name == "cicc" || p.Name == "nvcc" {
			if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			stopped++
		}
	}
	if stopped != 2 {
		t.Fatalf("%d compilers", stopped)
	}
	j = diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.Paused)
	if found(j, "kernel-build") != nil || !strings.Contains(j.Sentence, "cc)") {
		t.Errorf("%s", j.Sentence)
	}
}

// hub serves bytes at 200 kB/s, so many in all, and then nothing.
func hub(t *testing.T, most int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
		piece := make([]byte, 20_000)
		for sent := 0; sent < most; sent += len(piece) {
			if _, err := conn.Write(piece); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	return l.Addr().String()
}

// S12: a download, and a hub that stops sending, with lock files that lie about.
func TestDownload(t *testing.T) {
	dir := cacheDir(t)
	s := cacheServer(t, dir, "download", "CACHES_PEER="+hub(t, 1<<30))
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Loading, rule.Download)
	if p := j.Carried.Phase; p == nil || p.Name != evidence.PhaseDownload || p.Rate < 100_000 || p.Rate > 300_000 {
		t.Errorf("%+v", p)
	}
	if j.Strength != rule.Strong || !strings.Contains(j.Sentence, "abc.incomplete") {
		t.Errorf("%s: %s", j.Strength, j.Sentence)
	}
	t.Logf("%s (%.0f ms)", j.Sentence, j.Case.TookMS)
}

func TestDownloadStalled(t *testing.T) {
	dir := cacheDir(t)
	yesterday(t, filepath.Join(dir, "hub", ".locks", "models--x", "abc.lock"))
	yesterday(t, filepath.Join(dir, "hub", "models--y", "blobs", "old.incomplete"))
	s := cacheServer(t, dir, "download", "CACHES_PEER="+hub(t, 100_000))
	time.Sleep(time.Second)
	j := diagnosed(t, quick(s.PID))
	expect(t, j, rule.Stalled, rule.DownloadStalled)
	if j.Strength != rule.Strong || !strings.Contains(j.Sentence, "abc.incomplete stays") || !strings.Contains(j.Sentence, "harmless") {
		t.Errorf("%s: %s", j.Strength, j.Sentence)
	}
	if j.Carried.Culprits[0].PID != s.PID {
		t.Errorf("%+v, want process %s", j.Carried.Culprits, strconv.Itoa(s.PID))
	}
}

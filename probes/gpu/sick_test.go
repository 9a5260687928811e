//go:build cgo

package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/gpu/nvmlstub"
)

// shortLimit is enough for a stub that answers, even on a busy machine.
const shortLimit = 2 * time.Second

func contains(t *testing.T, s string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(s, p) {
			t.Errorf("%q lacks %q", s, p)
		}
	}
}

// withModule makes a /proc in which the NVIDIA kernel module is loaded.
func withModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "driver/nvidia"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build  (root@host)  Tue Mar  3 10:00:00 UTC 2026\nGCC version:  gcc version 12.2.0\n"
	if err := os.WriteFile(filepath.Join(dir, "driver/nvidia/version"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDriverHangsInInit(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "hang=nvmlInit_v2")
	p := start(t)
	p.procDir = withModule(t)
	p.Limit = shortLimit
	gpu, frames, run := p.Devices(t.Context(), nil)
	if run.Status != evidence.Timeout || run.Hint != driverHint {
		t.Errorf("run is %+v", run)
	}
	contains(t, run.Detail, "the NVIDIA driver does not answer: nvmlInit_v2 did not return within 2", "s (child ",
		" in state S", "kernel module 595.45.04 still answers")
	if frames != nil || gpu == nil || gpu.Child == nil {
		t.Fatalf("GPU %+v, frames %v", gpu, frames)
	}
	if c := gpu.Child; c.Stage != "nvmlInit_v2" || c.State != "S" || c.PID == 0 {
		t.Errorf("child is %+v", c)
	}
	// The call hangs on the main thread. The other threads of the child are in
	// a futex or in epoll: to name those would send the reader astray.
	if w := gpu.Child.Wchan; strings.Contains(w, "futex") || strings.HasPrefix(w, "ep_") {
		t.Errorf("the wait channel %q is not that of the call", w)
	}
	if p.Look(t.Context()) != nil {
		t.Error("a later look found GPUs")
	}
	gone(t, gpu.Child.PID)
}

// gone waits until the killed child was reaped.
func gone(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("child %d is still there", pid)
}

func TestOneGPUHangs(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "hang=nvmlDeviceGetUUID@3")
	p := start(t)
	p.Limit = shortLimit
	gpu, frames, run := p.Devices(t.Context(), nil)
	if run.Status != evidence.Timeout {
		t.Errorf("run is %+v", run)
	}
	contains(t, run.Detail, "nvmlDeviceGetUUID of GPU 3 did not return", "3 of 8 GPUs were read")
	if len(frames) != 3 || len(gpu.Devices) != 3 || gpu.Child == nil {
		t.Errorf("GPU %+v, %d frames", gpu, len(frames))
	}
}

func TestDriverHangsInALaterLook(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "gpus=2;hang=nvmlDeviceGetPowerUsage@1:2")
	p := start(t)
	p.Limit = shortLimit
	if _, frames, run := p.Devices(t.Context(), nil); run.Status != evidence.OK || len(frames) != 2 {
		t.Fatalf("first look: %+v", run)
	}
	if frames := p.Look(t.Context()); len(frames) != 1 {
		t.Errorf("later look: %d GPUs answered, want the one before the hang", len(frames))
	}
	run, stuck := p.Status()
	if run.Status != evidence.Timeout || run.Name != evidence.ProbeGPU || stuck == nil {
		t.Errorf("run is %+v, child %+v", run, stuck)
	}
	contains(t, run.Detail, "nvmlDeviceGetPowerUsage of GPU 1 did not return")
}

func TestParentGoesOnWhileTheDriverHangs(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "hang=nvmlInit_v2")
	p := start(t)
	p.Limit = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan evidence.ProbeRun)
	go func() {
		_, _, run := p.Devices(ctx, nil)
		done <- run
	}()
	// Other probes start processes and wait for them meanwhile.
	for range 5 {
		if err := exec.Command("true").Run(); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case run := <-done:
		t.Fatalf("came back before it was told to: %+v", run)
	default:
	}
	cancel()
	if run := <-done; run.Status != evidence.Timeout || run.Detail != "interrupted" {
		t.Errorf("run is %+v", run)
	}
}

func TestLibraryCrashes(t *testing.T) {
	for _, call := range []string{"nvmlInit_v2", "nvmlDeviceGetName"} {
		t.Run(call, func(t *testing.T) {
			nvmlstub.Use(t, nvmlstub.Build(t), "crash="+call)
			p := start(t)
			_, frames, run := p.Devices(t.Context(), nil)
			if run.Status != evidence.Failed || frames != nil || run.Hint == "" {
				t.Errorf("run is %+v", run)
			}
			contains(t, run.Detail, "ended the process that asked it in "+call, ": exit status 2: ", "SIGSEGV")
			if p.Look(t.Context()) != nil {
				t.Error("a later look found GPUs")
			}
		})
	}
}

func TestDriverNotLoaded(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "driver=notloaded")
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if run.Status != evidence.Unsupported || gpu != nil || frames != nil || run.Hint == "" {
		t.Errorf("run is %+v, GPU %+v", run, gpu)
	}
	contains(t, run.Detail, "no NVIDIA driver: ", `"Driver Not Loaded"`)
}

func TestInitRefused(t *testing.T) {
	for code, want := range map[string]evidence.Status{"4": evidence.Denied, "18": evidence.Failed, "999": evidence.Failed} {
		nvmlstub.Use(t, nvmlstub.Build(t), "fail=nvmlInit_v2:"+code)
		_, _, run := start(t).Devices(t.Context(), nil)
		if run.Status != want || run.Hint == "" || !strings.HasPrefix(run.Detail, "nvmlInit_v2: ") {
			t.Errorf("code %s: run is %+v, want %s", code, run, want)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	if out, err := exec.Command("sh", "-c", "ldconfig -p || /sbin/ldconfig -p").Output(); err != nil || strings.Contains(string(out), libraryName) {
		t.Skip("this machine has an NVIDIA library, or no ldconfig to tell")
	}
	t.Setenv("LD_LIBRARY_PATH", t.TempDir())
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if want := "no NVIDIA driver: libnvidia-ml.so.1 not found"; run.Status != evidence.Unsupported || run.Detail != want || run.Hint == "" {
		t.Errorf("run is %+v, want unsupported and %q", run, want)
	}
	if gpu != nil || frames != nil {
		t.Errorf("GPU %+v, frames %v", gpu, frames)
	}

	p := start(t)
	p.procDir = withModule(t)
	_, _, run = p.Devices(t.Context(), nil)
	contains(t, run.Detail, "libnvidia-ml.so.1 not found", "kernel module 595.45.04 is loaded")
}

func TestLibraryIsSomethingElse(t *testing.T) {
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc)")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, libraryName)
	nvmlstub.Use(t, dir, "")

	if err := os.WriteFile(file, []byte("not a library\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, run := start(t).Devices(t.Context(), nil)
	if run.Status != evidence.Unsupported {
		t.Errorf("run is %+v", run)
	}
	contains(t, run.Detail, "no NVIDIA driver: libnvidia-ml.so.1 cannot be loaded: ")

	source := filepath.Join(dir, "empty.c")
	if err := os.WriteFile(source, []byte("int nothing;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", file, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, _, run = start(t).Devices(t.Context(), nil)
	if run.Status != evidence.Unsupported {
		t.Errorf("run is %+v", run)
	}
	contains(t, run.Detail, "no nvmlInit")
}

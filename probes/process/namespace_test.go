package process

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// startOr starts a scenario that needs rights, and skips where it says that it
// cannot.
func startOr(t *testing.T, name string, args ...string) *scenario.Process {
	t.Helper()
	exe := scenario.Build(t, name)
	if !isRoot() {
		t.Skip(name + " needs root")
	}
	probe := exec.Command(exe, args...)
	probe.Stdin = strings.NewReader("")
	if out, _ := probe.Output(); strings.HasPrefix(string(out), "cannot") {
		t.Skip(name + " " + strings.TrimSpace(string(out)))
	}
	return scenario.Start(t, name, args...)
}

// In a container the thread IDs in memory are small numbers of its own.
func TestWaitsInPIDNamespace(t *testing.T) {
	s := startOr(t, "pid_namespace", scenario.Build(t, "abba"))
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	if len(procs) != 2 || len(procs[1].NSPID) != 2 || procs[1].NSPID[1] != 1 {
		t.Fatalf("tree: %+v", procs)
	}
	if procs[0].PIDNS == procs[1].PIDNS || procs[1].MntNS == "" {
		t.Errorf("namespaces: %q and %q, %q", procs[0].PIDNS, procs[1].PIDNS, procs[1].MntNS)
	}
	waits := waitsOf(t, r, procs)
	if got := circle(waits); got != 2 {
		t.Errorf("a circle of %d, want 2", got)
	}
	for _, w := range waits {
		if w.Futex == nil {
			continue // the parent waits for its child
		}
		if m := w.Futex.Mutex; m != nil && (m.OwnerNSTID > 10 || w.Futex.Owner.PID != procs[1].PID || w.Futex.Caller != "pthread_mutex_lock") {
			t.Errorf("thread %d: %+v, caller %q", w.TID, m, w.Futex.Caller)
		}
	}
}

// A file system that does not answer costs its deadline once, not the run.
func TestFilesOnHangingMount(t *testing.T) {
	dir := t.TempDir()
	s := startOr(t, "hang_mount", dir)
	r := reader(t)
	ctx := context.Background()
	root := r.path(s.PID, "root")
	if _, err := r.files.size(ctx, dir+"/model.safetensors", []string{root + dir + "/model.safetensors"}); err == nil {
		t.Fatal("an answer from a mount that has none")
	} else {
		t.Log(err)
	}
	left := r.Files().Left()
	if len(left) != 1 || !strings.HasSuffix(left[0].Stage, "/model.safetensors") {
		t.Fatalf("left behind: %+v", left)
	}
	t.Logf("%+v", left[0])
	// Not asked again, and other directories are.
	if _, err := r.files.size(ctx, dir+"/other.safetensors", []string{root + dir + "/other.safetensors"}); err == nil || !strings.Contains(err.Error(), "not asked again") {
		t.Errorf("second question: %v", err)
	}
	if n, err := r.files.size(ctx, "/proc/self/exe", []string{"/proc/self/exe"}); err != nil || n == 0 {
		t.Errorf("another directory: %d, %v", n, err)
	}
	if got := len(r.Files().Left()); got != 1 {
		t.Errorf("%d children left behind, want 1", got)
	}
	// Looking at the process itself is not in danger.
	procs := treeOf(t, r, s.PID)
	if frames, run := r.Look(ctx, procs, LookOptions{Threads: true}); len(frames) != 1 || run.Status != evidence.OK {
		t.Errorf("%+v", run)
	}
}

// A container's files are found below its own root, by the names it shows.
func TestWeightsInMountNamespace(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to mount")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("no unshare")
	}
	dir := t.TempDir()
	s := scenario.StartCmd(t, nil, exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t tmpfs none "$1" && mkdir "$1/m" "$1/data" && truncate -s 1M "$1/data/w" && ln -s "$1/data/w" "$1/m/w.safetensors" && echo ready && read end`, "sh", dir))
	w, err := reader(t).Files().Weights(context.Background(), s.PID, dir+"/m", "argv")
	if err != nil {
		t.Fatal(err)
	}
	if w.FSType != "tmpfs" || w.TotalBytes != 1<<20 || len(w.Files) != 1 || w.Files[0].RealPath != dir+"/data/w" {
		t.Errorf("%+v", w)
	}
}

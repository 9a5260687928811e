package caches

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// cacheOf is one cache of this test's own process.
func cacheOf(dir, library string) evidence.Cache {
	return evidence.Cache{Path: dir, Library: library, Kind: libraryNamed(library).kind, PID: os.Getpid()}
}

func TestProbeLooks(t *testing.T) {
	dir := t.TempDir()
	later := filepath.Join(dir, "later")
	if err := os.MkdirAll(filepath.Join(dir, "ext", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ext", "x", "lock"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	p := New("/proc", []evidence.Cache{cacheOf(filepath.Join(dir, "ext"), "torch extensions"), cacheOf(later, "Hugging Face hub")}, nil)
	defer p.Close()
	looks, run := p.Look(context.Background())
	if run.Status != evidence.OK || len(looks) != 1 || looks[0].Cache != 0 {
		t.Fatalf("%+v, %+v", looks, run)
	}
	if l := looks[0].Locks; len(l) != 1 || l[0].Kind != evidence.LockPresence || !l[0].Executable || l[0].Inode == 0 || time.Since(l[0].Modified) > time.Minute {
		t.Errorf("%+v", l)
	}
	// A directory that is made later is seen then.
	if err := os.MkdirAll(later, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(later, "a.incomplete"), make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	looks, _ = p.Look(context.Background())
	if len(looks) != 2 || len(looks[1].Frame.Partial) != 1 || looks[1].Frame.Partial[0].SizeBytes != 4096 {
		t.Fatalf("%+v", looks)
	}
}

// A directory that may not be read is said to be so, with what would help.
func TestProbeDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	p := New("/proc", []evidence.Cache{cacheOf(dir, "Triton")}, nil)
	defer p.Close()
	looks, run := p.Look(context.Background())
	if run.Status != evidence.Partial || len(looks) != 1 || looks[0].Unread == nil || looks[0].Unread.Status != evidence.Denied || run.Hint == "" {
		t.Errorf("%+v, %+v", looks, run)
	}
}

// A cache on a store that does not answer costs its time limit once, is left
// behind with its child, and the others are looked at all the same.
func TestProbeOnHangingMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	dead, alive := t.TempDir(), t.TempDir()
	exe := scenario.Build(t, "hang_mount")
	try := exec.Command(exe, dead)
	try.Stdin = strings.NewReader("")
	if out, _ := try.Output(); strings.HasPrefix(string(out), "cannot") {
		t.Skip("hang_mount " + strings.TrimSpace(string(out)))
	}
	s := scenario.Start(t, "hang_mount", dead)
	if err := os.WriteFile(filepath.Join(alive, "k.cubin"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	hub := cacheOf(filepath.Join(dead, "hub"), "Hugging Face hub")
	hub.PID = s.PID
	p := New("/proc", []evidence.Cache{hub, cacheOf(alive, "Triton")}, []evidence.Process{{PID: s.PID, MntNS: "mnt:[1]"}})
	defer p.Close()
	begin := time.Now()
	_, run := p.Look(context.Background())
	if run.Status != evidence.Timeout || !strings.Contains(run.Detail, "does not answer") || !strings.Contains(run.Hint, hub.Path) {
		t.Errorf("%+v", run)
	}
	if took := time.Since(begin); took > 3*lookLimit {
		t.Errorf("took %s", took)
	}
	looks, run := p.Look(context.Background())
	if run.Status != evidence.OK || len(looks) != 1 || looks[0].Frame.Files != 1 {
		t.Errorf("the other cache: %+v, %+v", looks, run)
	}
}

// A server in a container has its own root: its paths mean something there.
func TestProbeInMountNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("no unshare")
	}
	dir := t.TempDir()
	s := scenario.StartCmd(t, nil, exec.Command("unshare", "--mount", "sh", "-c",
		`mount -t tmpfs none "$1" && mkdir "$1/real" && echo xxx > "$1/real/k" && ln -s "$1/real" "$1/cache" && echo ready && read end`, "sh", dir))
	c := cacheOf(filepath.Join(dir, "cache"), "Triton")
	c.PID = s.PID
	p := New("/proc", []evidence.Cache{c}, []evidence.Process{{PID: s.PID, MntNS: "mnt:[1]"}})
	defer p.Close()
	looks, run := p.Look(context.Background())
	if len(looks) != 1 || looks[0].Frame.Bytes != 4 {
		t.Errorf("%+v, %+v", looks, run)
	}
}

package kernel

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{ChildName: Child})
	code := m.Run()
	scenario.Remove()
	os.Exit(code)
}

func newReader(t *testing.T) *Reader {
	t.Helper()
	r, err := NewReader(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// find is the file system that holds something of the server.
func find(found []evidence.FileSystem, what string) *evidence.FileSystem {
	for i := range found {
		for _, u := range found[i].For {
			if u.What == what {
				return &found[i]
			}
		}
	}
	return nil
}

func TestRoom(t *testing.T) {
	home := t.TempDir()
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	self := evidence.Process{PID: os.Getpid(), UID: os.Geteuid(), State: "R", Cwd: cwd, Env: map[string]string{"HOME": home, "HF_HOME": home + "/none", "TMPDIR": "relative"}}
	found, unread := newReader(t).FileSystems(t.Context(), []evidence.Process{self})
	if len(unread) > 0 {
		t.Errorf("%+v", unread)
	}
	f := find(found, "HOME")
	if f == nil || find(found, "working directory") == nil || find(found, "HF_HOME") != nil || find(found, "TMPDIR") != nil {
		t.Fatalf("%+v", found)
	}
	var want unix.Statfs_t
	if err := unix.Statfs(home, &want); err != nil {
		t.Fatal(err)
	}
	if f.SizeBytes != want.Blocks*uint64(want.Bsize) || f.Inodes != want.Files || f.ReadOnly || !strings.HasPrefix(home, f.Mount) || f.FSType == "" {
		t.Errorf("%+v, by statfs %+v", f, want)
	}
}

// A server whose HOME lies on a store that does not answer: the others are asked
// all the same, what hung is said, and what else lies there is not asked.
func TestDeadMount(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(scenario.Build(t, "hang_mount"), dir)
	if os.Geteuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("no FUSE here")
	}
	s := scenario.StartCmd(t, nil, cmd)
	p := evidence.Process{PID: s.PID, State: "S", Cwd: "/", Env: map[string]string{"HOME": dir, "HF_HOME": dir + "/a", "XDG_CACHE_HOME": dir + "/b"}}
	r := newReader(t)
	found, unread := r.FileSystems(t.Context(), []evidence.Process{p})
	if find(found, "/tmp") == nil || find(found, "working directory") == nil || find(found, "HOME") != nil {
		t.Errorf("%+v", found)
	}
	if len(unread) != 3 {
		t.Fatalf("%+v", unread)
	}
	for _, u := range unread {
		if u.Status != evidence.Timeout || !strings.Contains(u.What, dir) {
			t.Errorf("%+v", u)
		}
	}
	if left := len(r.asker.Left()); left != 1 {
		t.Errorf("%d children left behind", left)
	}
}

// Links that lead to the top stay below the target's root.
func TestLinksStayBelow(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(root+"/only-here", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/only-here", root+"/link"); err != nil {
		t.Fatal(err)
	}
	_, err := roomAt(root, "/link")
	if err != nil {
		t.Error(err)
	}
	if _, err := roomAt(root, "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	// A FIFO is asked without waiting for whoever opens its other end.
	if err := unix.Mkfifo(root+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := roomAt(root, "/fifo"); err != nil {
		t.Error(err)
	}
}

// The kernel's log is read to its end, or it is said why not, with what to do.
func TestKernelLog(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	log, run := newReader(t).Log(ctx, &evidence.Process{PID: os.Getpid()})
	switch {
	case run.Name != evidence.ProbeKernel:
		t.Errorf("%+v", run)
	case log == nil && (run.Status == evidence.OK || run.Detail == "" || run.Hint == ""):
		t.Errorf("%+v", run)
	case log != nil && run.Status != evidence.OK:
		t.Errorf("%+v %+v", log, run)
	}
	t.Logf("%+v %+v", log, run)
}

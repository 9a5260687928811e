package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestTree(t *testing.T) {
	abba := scenario.Build(t, "abba")
	r := reader(t)
	cmd := exec.Command("sh", "-c", `exec 3<&0; "$1" 1 <&3 & "$1" 2 --api-key sk-not-a-secret <&3 & wait`, "sh", abba)
	cmd.Env = append(os.Environ(), "WHYHANG_TEST=yes", "WHYHANG_TEST_TOKEN=hush", "OTHER=1")
	s := scenario.StartCmd(t, nil, cmd)
	var procs []evidence.Process
	var run evidence.ProbeRun
	eventually(t, "a shell with two children", func() bool {
		procs, run = r.Tree(context.Background(), s.PID, TreeOptions{Env: []string{"WHYHANG_*", "NOT_SET"}})
		return len(procs) == 3 && procs[1].Name == "abba" && procs[2].Name == "abba"
	})
	if run.Name != evidence.ProbeProcess || run.Status != evidence.OK {
		t.Errorf("run: %+v", run)
	}
	root := procs[0]
	if root.PID != s.PID || root.PPID != os.Getpid() || root.UID != os.Geteuid() || len(root.Unread) != 0 {
		t.Errorf("root: %+v", root)
	}
	if age := time.Since(root.Started); age < -2*time.Second || age > time.Minute {
		t.Errorf("started %s ago", age)
	}
	for _, p := range procs[1:] {
		if p.PPID != s.PID || p.Exe != abba || len(p.NSPID) == 0 || p.NSPID[0] != p.PID {
			t.Errorf("child: %+v", p)
		}
		if p.Env["WHYHANG_TEST"] != "yes" || p.Env["WHYHANG_TEST_TOKEN"] != "[redacted]" || len(p.Env) != 2 {
			t.Errorf("environment: %v", p.Env)
		}
		if !strings.HasPrefix(p.Libc, "glibc 2.") && p.Libc != "musl" {
			t.Errorf("libc: %q", p.Libc)
		}
		if p.NetNS == "" || p.Cwd == "" {
			t.Errorf("links: %+v", p)
		}
	}
	if !slices.ContainsFunc(procs, func(p evidence.Process) bool {
		return slices.Equal(p.Argv, []string{abba, "2", "--api-key", "[redacted]"})
	}) {
		t.Error("no redacted command line")
	}
}

func TestRefresh(t *testing.T) {
	r := reader(t)
	abba := scenario.Build(t, "abba")
	// The children appear when the shell is told to go on.
	s := scenario.StartCmd(t, nil, exec.Command("sh", "-c", `echo ready; read go; sh -c '"$1" 1; exit' sh "$1"; exit`, "sh", abba))
	known := treeOf(t, r, s.PID)
	if again := r.Refresh(context.Background(), known, TreeOptions{}); len(again) != 1 {
		t.Fatalf("children before there are any: %+v", again)
	}
	if _, err := s.Stdin.(interface{ Write([]byte) (int, error) }).Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	var now []evidence.Process
	eventually(t, "a grandchild", func() bool {
		now = r.Refresh(context.Background(), known, TreeOptions{})
		return len(now) == 3 && now[2].Name == "abba"
	})
	if now[0].PID != s.PID || now[1].PPID != s.PID || now[2].PPID != now[1].PID {
		t.Errorf("order: %+v", now)
	}
	if len(known) != 1 {
		t.Error("the list that was handed in has grown")
	}
	// A PID that is somebody else's now: the start time differs.
	now[0].StartTicks--
	frames, _ := r.Look(context.Background(), now[:1], LookOptions{Threads: true})
	if frames[0].State != "" || frames[0].Threads != nil || frames[0].UserMS != 0 {
		t.Errorf("another process under the same PID was looked at: %+v", frames[0])
	}
}

func TestTreeOfNobody(t *testing.T) {
	r := reader(t)
	procs, run := r.Tree(context.Background(), 1<<30, TreeOptions{})
	if len(procs) != 0 || run.Status != evidence.Failed {
		t.Errorf("%+v %+v", procs, run)
	}
}

func TestFind(t *testing.T) {
	r := reader(t)
	s := scenario.Start(t, "relock")
	if got := r.Find(s.PID); got.State != evidence.TargetAlive || got.PID != s.PID || got.AskedTID != 0 {
		t.Errorf("alive: %+v", got)
	}
	tasks, err := openTasks("/proc", s.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.close()
	tids, _ := tasks.list()
	if got := r.Find(tids[1]); got.State != evidence.TargetAlive || got.PID != s.PID || got.AskedTID != tids[1] {
		t.Errorf("thread %d: %+v", tids[1], got)
	}
	for _, pid := range []int{1 << 30, 0, -1} {
		if got := r.Find(pid); got.State != evidence.TargetAbsent || got.PID != pid {
			t.Errorf("%d: %+v", pid, got)
		}
	}
}

func TestFindZombie(t *testing.T) {
	r := reader(t)
	for _, tc := range []struct {
		script string
		status int
	}{{"exit 3", 3 << 8}, {"kill -9 $$", 9}, {"exit 0", 0}} {
		cmd := exec.Command("sh", "-c", tc.script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		var got evidence.Target
		eventually(t, "a zombie", func() bool {
			got = r.Find(pid)
			return got.State == evidence.TargetZombie
		})
		if got.WaitStatus == nil || *got.WaitStatus != tc.status || got.ParentPID != os.Getpid() || got.ParentName == "" {
			t.Errorf("%s: %+v", tc.script, got)
		}
		procs := treeOf(t, r, pid)
		if p := procs[0]; p.State != "Z" || p.WaitStatus == nil || *p.WaitStatus != tc.status || len(p.Unread) != 0 {
			t.Errorf("%s: %+v", tc.script, p)
		}
		frames, _ := r.Look(context.Background(), procs, LookOptions{Threads: true})
		if f := frames[0]; f.State != "Z" || f.RSSAnonBytes != nil || f.WaitStatus == nil || *f.WaitStatus != tc.status {
			t.Errorf("%s: %+v", tc.script, f)
		}
		cmd.Wait()
		if got := r.Find(pid); got.State != evidence.TargetAbsent {
			t.Errorf("after it was reaped: %+v", got)
		}
	}
}

// A process lives on when its first thread has ended, and /proc/PID is empty.
func TestLeaderHasExited(t *testing.T) {
	r := reader(t)
	s := scenario.Start(t, "leader_exits")
	if got := r.Find(s.PID); got.State != evidence.TargetAlive {
		t.Errorf("%+v", got)
	}
	eventually(t, "it rests", func() bool { return treeOf(t, r, s.PID)[0].State == "S" })
	procs := treeOf(t, r, s.PID)
	p := procs[0]
	if !p.LeaderExited || p.State != "S" || p.Exe == "" || len(p.Argv) != 1 || p.NetNS == "" || !strings.HasPrefix(p.Libc, "glibc") {
		t.Errorf("%+v", p)
	}
	for _, u := range p.Unread {
		if isRoot() || !strings.HasSuffix(u.What, "/io") { // a zombie's io belongs to root
			t.Errorf("unread: %+v", u)
		}
	}
	frames, _ := r.Look(context.Background(), procs, LookOptions{Threads: true})
	f := frames[0]
	if f.State != "S" || f.RSSAnonBytes == nil || isRoot() && f.ReadCharBytes == nil || len(f.Threads) != 2 ||
		f.Threads[0].State != "Z" || f.Threads[1].Syscall == "" {
		t.Errorf("%+v", f)
	}
}

func TestContainerID(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for path, want := range map[string]string{
		"/docker/" + id:                         id,
		"/system.slice/docker-" + id + ".scope": id,
		"/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" + id + ".scope": id,
		"/user.slice/user-0.slice": "",
		"/x/" + id + "0":           "",
	} {
		m := containerID.FindStringSubmatch(path)
		if got := strings.Join(m[min(len(m), 1):], ""); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestHost(t *testing.T) {
	h := reader(t).Host()
	if h.CPUs < 1 || h.Kernel == "" || h.UID != os.Geteuid() || h.Arch == "" {
		t.Errorf("%+v", h)
	}
	if _, err := NewReader(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a directory that is not there is no /proc")
	}
	if _, err := NewReader(t.TempDir()); err == nil {
		t.Error("an empty directory is no /proc")
	}
}

// A process that executes another program after it was first seen is known by
// what it is now.
func TestRefreshAfterExec(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; exec sleep 100")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	r, err := NewReader("")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	known, _ := r.Tree(ctx, cmd.Process.Pid, TreeOptions{})
	if len(known) != 1 || known[0].Name != "sh" {
		t.Fatalf("%+v", known)
	}
	held := evidence.OpenFile{Path: "/models/1.safetensors", FD: 3, PosBytes: new(uint64)}
	known[0].Files = []evidence.OpenFile{held}
	if now := r.Refresh(ctx, known, TreeOptions{}); now[0].Name != "sh" {
		t.Fatalf("before: %+v", now)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	var now []evidence.Process
	for range 200 {
		if now = r.Refresh(ctx, known, TreeOptions{}); now[0].Name != "sh" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(now) != 1 || now[0].Name != "sleep" || len(now[0].Argv) != 2 || now[0].StartTicks != known[0].StartTicks {
		t.Errorf("after: %+v", now)
	}
	if len(now[0].Files) != 1 || now[0].Files[0].Path != held.Path {
		t.Errorf("files %+v", now[0].Files)
	}
	if known[0].Name != "sh" {
		t.Error("the old description was written to")
	}
}

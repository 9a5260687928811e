package process

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// readAsUser makes the test binary a reader of the process whose PID it holds.
const readAsUser = "WHYHANG_TEST_READ_AS_USER"

// reading is what such a reader saw.
type reading struct {
	UID                     int
	Target                  evidence.Target
	Procs                   []evidence.Process
	Frames                  []evidence.ProcessFrame
	Waits                   evidence.WaitLook
	TreeRun, LookRun, WtRun evidence.ProbeRun
}

func readerMain() int {
	pid, _ := strconv.Atoi(os.Getenv(readAsUser))
	r, err := NewReader("/proc")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.Close()
	ctx := context.Background()
	v := reading{UID: os.Geteuid(), Target: r.Find(pid)}
	v.Procs, v.TreeRun = r.Tree(ctx, pid, TreeOptions{Env: []string{"WHYHANG_*"}})
	v.Frames, v.LookRun = r.Look(ctx, v.Procs, LookOptions{Threads: true})
	v.Waits, v.WtRun = r.Waits(ctx, v.Procs)
	if err := json.NewEncoder(os.Stdout).Encode(v); err != nil {
		return 1
	}
	return 0
}

// nobody is a user without rights.
var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// testBinary is a copy of this test binary that every user may run.
func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := scenario.Dir()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "process.test")
	if _, err := os.Stat(out); err == nil {
		return out
	}
	in, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := os.OpenFile(out, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, in); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// readAs reads pid as another user, through a command in front if any.
func readAs(t *testing.T, user *syscall.Credential, pid int, before ...string) reading {
	t.Helper()
	argv := append(before, testBinary(t))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), readAsUser+"="+strconv.Itoa(pid))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, stderr.String())
	}
	var v reading
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return v
}

func TestOrdinaryUserOwnProcess(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to become another user; the other tests cover an ordinary user's own processes")
	}
	abba := scenario.Build(t, "abba")
	s := scenario.StartCmd(t, nobody, exec.Command(abba, "3"))
	v := readAs(t, nobody, s.PID)
	if v.UID != 65534 || v.Target.State != evidence.TargetAlive || len(v.Procs) != 1 {
		t.Fatalf("as %d: %+v, %d processes", v.UID, v.Target, len(v.Procs))
	}
	if len(v.Procs[0].Unread) != 0 || v.TreeRun.Status != evidence.OK || v.LookRun.Status != evidence.OK || v.WtRun.Status != evidence.OK {
		t.Errorf("own process not fully read: %+v %+v %+v %+v", v.Procs[0].Unread, v.TreeRun, v.LookRun, v.WtRun)
	}
	waits := map[int]evidence.Wait{}
	for _, w := range v.Waits.Waits {
		waits[w.TID] = w
	}
	if got := circle(waits); got != 2 {
		t.Errorf("a circle of %d, want 2", got)
	}
}

func TestOrdinaryUserForeignProcess(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to have a process of another user")
	}
	s := scenario.Start(t, "abba", "3")
	v := readAs(t, nobody, s.PID)
	if v.Target.State != evidence.TargetAlive || len(v.Procs) != 1 {
		t.Fatalf("%+v, %d processes", v.Target, len(v.Procs))
	}
	p := v.Procs[0]
	if p.Name != "abba" || len(p.Argv) != 2 || p.UID != 0 || p.StartTicks == 0 || len(p.NSPID) == 0 {
		t.Errorf("what anybody may read is missing: %+v", p)
	}
	want := []string{"cwd", "environ", "exe", "fd", "io", "maps", "ns/mnt", "ns/net", "ns/pid", "task/*/syscall"}
	var got []string
	for _, u := range p.Unread {
		got = append(got, strings.TrimPrefix(u.What, fmt.Sprintf("/proc/%d/", s.PID)))
		if u.Status != evidence.Denied || u.Hint != fmt.Sprintf("sudo whyhang %d", s.PID) || u.Why == "" {
			t.Errorf("unread: %+v", u)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("unread %v, want %v", got, want)
	}
	f := v.Frames[0]
	if f.ReadCharBytes != nil || f.ReadBytes != nil {
		t.Error("io counters that may not be read are not nil")
	}
	if f.RSSAnonBytes == nil || len(f.Threads) != 6 {
		t.Errorf("%d threads, rss %v", len(f.Threads), f.RSSAnonBytes)
	}
	for _, th := range f.Threads {
		if th.Syscall != "" || th.Wchan != "" || th.State != "S" || th.RunNS == nil {
			t.Errorf("thread: %+v", th)
		}
	}
	if len(v.Waits.Waits) != 0 {
		t.Errorf("waits: %+v", v.Waits.Waits)
	}
	for _, run := range []evidence.ProbeRun{v.LookRun, v.WtRun} {
		if run.Status != evidence.Denied || run.Hint != fmt.Sprintf("sudo whyhang %d", s.PID) || run.Detail == "" {
			t.Errorf("run: %+v", run)
		}
	}
	if v.TreeRun.Status != evidence.Partial {
		t.Errorf("tree run: %+v", v.TreeRun)
	}
}

// With hidepid=2 a foreign process looks as if it did not exist.
func TestHiddenProcess(t *testing.T) {
	if !isRoot() {
		t.Skip("needs root to mount /proc with hidepid")
	}
	for _, tool := range []string{"unshare", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	s := scenario.Start(t, "relock")
	v := readAs(t, nil, s.PID, "unshare", "--mount", "sh", "-c",
		`mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"`, "sh")
	if v.UID != 65534 || v.Target.State != evidence.TargetHidden || len(v.Procs) != 0 {
		t.Errorf("as %d: %+v, %d processes", v.UID, v.Target, len(v.Procs))
	}
}

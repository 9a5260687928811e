package process

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// procFixture writes a directory that looks like /proc: files by name, links
// as "-> target".
func procFixture(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func statLine(pid int, comm string, state byte, ppid, threads, start int) string {
	return fmt.Sprintf("%d (%s) %c %d 1 1 0 -1 0 11 0 22 0 300 40 5 6 20 0 %d 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n", pid, comm, state, ppid, threads, start)
}

// Another machine's /proc, or one made by hand: two threads of a server that
// wait for each other, in a container, with a weight file half read.
func TestFixture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the fixture has system calls of x86-64")
	}
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	dir := procFixture(t, map[string]string{
		"stat":                         "cpu  1 2 3\ncpu0 1\ncpu1 1\ncpu2 1\nbtime 1700000000\n",
		"sys/kernel/yama/ptrace_scope": "1\n",
		"1/stat":                       statLine(1, "init", 'S', 0, 1, 1),
		"100/stat":                     statLine(100, "srv) (x", 'S', 1, 2, 500),
		"100/status":                   "Name:\tsrv\nTgid:\t100\nUid:\t1000\t1000\t1000\t1000\nNSpid:\t100\t7\nRssAnon:\t10 kB\nRssFile:\t20 kB\nRssShmem:\t0 kB\nVmSwap:\t0 kB\n",
		"100/cmdline":                  "python3\x00-m\x00server\x00--api-key\x00hush\x00--port\x008000\x00",
		"100/environ":                  "HF_TOKEN=hush\x00PORT=8000\x00HOME=/root\x00",
		"100/cgroup":                   "0::/docker/" + id + "\n",
		"100/io":                       "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 0\n",
		"100/mountinfo":                "30 1 0:25 / / rw - overlay overlay rw\n31 30 0:26 / /models ro - nfs4 server:/m rw\n",
		"100/exe":                      "-> /usr/bin/python3.12",
		"100/cwd":                      "-> /srv",
		"100/ns/net":                   "-> net:[4026532000]",
		"100/ns/pid":                   "-> pid:[4026532001]",
		"100/ns/mnt":                   "-> mnt:[4026532002]",
		"100/fd/0":                     "-> /dev/null",
		"100/fd/3":                     "-> /models/a.safetensors",
		"100/fd/4":                     "-> socket:[77]",
		"100/fdinfo/3":                 "pos:\t4096\nflags:\t0100000\nmnt_id:\t31\nino:\t9\n",
		"100/maps":                     "00001000-00003000 rw-p 00000000 00:00 0 \n00003000-00004000 r--p 00000000 00:1a 9                          /models/a.safetensors\n7f0000000000-7f0000001000 r-xp 00000000 fe:00 5                          /usr/lib/libtorch_cpu.so\n",
		"100/smaps":                    "00003000-00004000 r--p 00000000 00:1a 9                          /models/a.safetensors\nRss:                   4 kB\n",
		"100/mem":                      "",
		"100/task/100/stat":            statLine(100, "srv", 'S', 1, 2, 500),
		"100/task/100/status":          "NSpid:\t100\t7\n",
		"100/task/100/syscall":         "202 0x1100 0x80 0x2 0x0 0x0 0x0 0x2f00 0x7f00\n",
		"100/task/100/wchan":           "futex_do_wait",
		"100/task/100/schedstat":       "1000 10 3\n",
		"100/task/101/stat":            statLine(101, "worker", 'S', 1, 2, 501),
		"100/task/101/status":          "NSpid:\t101\t8\n",
		"100/task/101/syscall":         "202 0x1200 0x80 0x2 0x0 0x0 0x0 0x2f00 0x7f00\n",
		"100/task/101/wchan":           "futex_do_wait",
		"100/task/101/schedstat":       "2000 20 4\n",
		"200/stat":                     statLine(200, "child", 'Z', 100, 1, 600),
		"200/io":                       "rchar: 0\n",
	})
	mem := make([]byte, 0x3000)
	copy(mem[0x1100:], mutexMemory(2, 0, 8, 1, 0, 0)) // held by 101, which calls itself 8
	copy(mem[0x1200:], mutexMemory(2, 0, 7, 1, 0, 0))
	binary.NativeEndian.PutUint64(mem[0x2f00:], 1)
	if err := os.WriteFile(filepath.Join(dir, "100/mem"), mem, 0o644); err != nil {
		t.Fatal(err)
	}

	r, err := NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if h := r.Host(); h.CPUs != 3 || h.YamaScope == nil || *h.YamaScope != 1 {
		t.Errorf("%+v", h)
	}
	if got := r.Find(100); got.State != evidence.TargetAlive {
		t.Errorf("%+v", got)
	}
	if got := r.Find(200); got.State != evidence.TargetZombie || got.ParentPID != 100 || got.ParentName != "srv) (x" {
		t.Errorf("%+v", got)
	}
	if got := r.Find(os.Getpid()); got.State != evidence.TargetAbsent && os.Getpid() != 1 {
		t.Errorf("a PID of this machine in another's /proc: %+v", got)
	}

	procs, _ := r.Tree(context.Background(), 100, TreeOptions{Env: []string{"HF_*", "PORT"}})
	if len(procs) != 2 || procs[1].PID != 200 || procs[1].State != "Z" {
		t.Fatalf("%+v", procs)
	}
	p := procs[0]
	p.Unread = nil
	pos, rss := uint64(4096), uint64(4096)
	want := evidence.Process{
		PID: 100, PPID: 1, NSPID: []int{100, 7}, StartTicks: 500, Started: p.Started, Name: "srv) (x",
		Argv: []string{"python3", "-m", "server", "--api-key", "[redacted]", "--port", "8000"},
		Exe:  "/usr/bin/python3.12", Cwd: "/srv", UID: 1000, State: "S",
		NetNS: "net:[4026532000]", PIDNS: "pid:[4026532001]", MntNS: "mnt:[4026532002]",
		Cgroup: "/docker/" + id, Container: id,
		Env:       map[string]string{"HF_TOKEN": "[redacted]", "PORT": "8000"},
		Libraries: []string{"libtorch_cpu.so"},
		Files:     []evidence.OpenFile{{Path: "/models/a.safetensors", Mapped: true, MappedBytes: 4096, ResidentBytes: &rss, FD: 3, PosBytes: &pos}},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := p.Started.Unix(); got != 1700000005 {
		t.Errorf("started %d", got)
	}

	frames, _ := r.Look(context.Background(), procs, LookOptions{Threads: true})
	if f := frames[0]; f.UserMS != 3000 || f.SystemMS != 400 || f.ChildUserMS != 50 || f.MinorFaults != 11 || len(f.Threads) != 2 || *f.RSSFileBytes != 20<<10 || *f.ReadBytes != 5 {
		t.Errorf("%+v", f)
	}
	look, run := r.Waits(context.Background(), procs)
	waits := map[int]evidence.Wait{}
	for _, w := range look.Waits {
		waits[w.TID] = w
	}
	if got := circle(waits); got != 2 || run.Status != evidence.OK {
		t.Errorf("a circle of %d: %+v %+v", got, run, look)
	}
	if m := waits[100].Futex.Owner; m.NSTID != 8 || m.TID != 101 || m.PID != 100 {
		t.Errorf("%+v", m)
	}
}

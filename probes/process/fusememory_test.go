package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// deadlineOfAll is longer than all limits of one reading together: what takes
// longer hangs.
const deadlineOfAll = 30 * time.Second

// inTime fails where a look hangs, instead of hanging with it.
func inTime[T any](t *testing.T, what string, look func() T) T {
	t.Helper()
	start := time.Now()
	a := within(context.Background(), deadlineOfAll, look)
	if !a.Done {
		t.Fatalf("%s: %s", what, a.Why)
	}
	t.Logf("%s took %s", what, time.Since(start).Round(time.Millisecond))
	return a.Value
}

// waitsForStore tells a thread that waits for an answer of a FUSE server, in
// its own request or for a page that another has asked for.
func waitsForStore(wchan string) bool {
	for _, in := range []string{"request_wait_answer", "filemap_", "folio_", "__folio_", "fuse_"} {
		if strings.HasPrefix(wchan, in) {
			return true
		}
	}
	return false
}

// wchansOf are where the threads of a process wait, by thread.
func wchansOf(pid string) map[string]string {
	wchans := map[string]string{}
	files, _ := filepath.Glob("/proc/" + pid + "/task/*/wchan")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil {
			wchans[filepath.Base(filepath.Dir(f))] = string(b)
		}
	}
	return wchans
}

// nothingLeft says whether this process still waits for the store, or for a
// look that was left behind.
func nothingLeft(t *testing.T, r *Reader) {
	t.Helper()
	for tid, wchan := range wchansOf("self") {
		if waitsForStore(wchan) {
			t.Errorf("thread %s of whyhang itself waits in %s", tid, wchan)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.inside) > 0 {
		t.Errorf("still looking at: %v", r.inside)
	}
}

// hangsCareless reads a byte of the target's memory the careless way, in a
// child, and holds that the child hangs. It ends with the store.
func hangsCareless(t *testing.T, s *scenario.Process, pid int, addr uint64) {
	t.Helper()
	cmd := exec.Command("dd", "if=/proc/"+strconv.Itoa(pid)+"/mem", "bs=1", "count=1", "iflag=skip_bytes", "skip="+strconv.FormatUint(addr, 10))
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		s.End() // else the child cannot end
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "a careless read of "+hexAddr(addr)+" hangs", func() bool {
		for _, wchan := range wchansOf(strconv.Itoa(cmd.Process.Pid)) {
			if waitsForStore(wchan) {
				return true
			}
		}
		return false
	})
}

// rolesOf are the threads by name, those of the process itself left out.
func rolesOf(f evidence.ProcessFrame) map[string]evidence.ThreadFrame {
	roles := map[string]evidence.ThreadFrame{}
	for _, th := range f.Threads {
		roles[th.Name] = th
	}
	return roles
}

// A store that died costs a reader of the target's memory nothing: no page of
// its file is touched, and the circle beside it is seen all the same.
func TestMemoryOfDeadStore(t *testing.T) {
	for _, mode := range []string{"plain", "code"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			s := startOr(t, "fuse_memory", dir, mode)
			pid, err := strconv.Atoi(s.Ready)
			if err != nil {
				t.Fatal(err)
			}
			r := reader(t)
			ctx := context.Background()
			procs := inTime(t, "the tree", func() []evidence.Process {
				procs, _ := r.Tree(ctx, pid, TreeOptions{})
				return procs
			})
			if len(procs) != 1 {
				t.Fatalf("%d processes, want 1", len(procs))
			}
			file := dir + "/model.safetensors"
			if f := procs[0].Files; len(f) != 1 || f[0].Path != file || !f[0].Mapped || f[0].SizeBytes == nil || *f[0].SizeBytes != 64<<20 {
				t.Errorf("files: %+v", f)
			}
			w := inTime(t, "the weights", func() *evidence.Weights {
				w, err := r.Files().Weights(ctx, pid, dir, "argv")
				if err != nil {
					t.Log(err)
				}
				return w
			})
			if w == nil || w.TotalBytes != 64<<20 || w.FSType != "fuse" {
				t.Errorf("weights: %+v", w)
			}
			nothingLeft(t, r)

			type pass struct {
				frames         []evidence.ProcessFrame
				look           evidence.WaitLook
				threads, waits evidence.ProbeRun
			}
			p := inTime(t, "a pass", func() (p pass) {
				p.frames, p.threads, p.look, p.waits = r.Pass(ctx, procs, LookOptions{Stacks: true})
				return p
			})
			nothingLeft(t, r)
			if len(p.frames) != 1 || p.threads.Status != evidence.OK || p.waits.Status != evidence.OK {
				t.Fatalf("%d frames, %+v, %+v", len(p.frames), p.threads, p.waits)
			}
			roles := rolesOf(p.frames[0])
			for _, name := range []string{"touch-private", "touch-shared", "futex-private", "futex-shared", "read"} {
				if !waitsForStore(roles[name].Wchan) {
					t.Fatalf("the scenario is not in position: %s is %+v", name, roles[name])
				}
			}
			waits := map[int]evidence.Wait{}
			for _, w := range p.look.Waits {
				waits[w.TID] = w
			}
			if got := circle(waits); got != 2 {
				t.Errorf("a circle of %d, want 2", got)
			}
			for name, other := range map[string]string{"ab": "ba", "ba": "ab"} {
				f := waits[roles[name].TID].Futex
				if f == nil || f.Owner == nil || f.Owner.TID != roles[other].TID || f.Caller != "pthread_mutex_lock" {
					t.Errorf("%s: %+v", name, f)
				}
			}
			trapsUntouched(t, r, s, pid, file, roles, waits)
			for _, left := range r.Files().Left() {
				t.Logf("child left behind: %+v", left)
			}
			if left := len(r.Files().Left()); mode == "plain" && left != 0 || mode == "code" && left != 1 {
				t.Errorf("%d children left behind", left)
			}
			// The second pass neither waits for the same again nor leaves more.
			inTime(t, "another pass", func() bool {
				r.Pass(ctx, procs, LookOptions{Stacks: true})
				return true
			})
			nothingLeft(t, r)
			if mode == "code" && len(r.Files().Left()) != 1 {
				t.Errorf("%d children left behind, want 1", len(r.Files().Left()))
			}
		})
	}
}

// trapsUntouched holds that nothing was read where a read hangs, and that it
// does hang there.
func trapsUntouched(t *testing.T, r *Reader, s *scenario.Process, pid int, file string, roles map[string]evidence.ThreadFrame, waits map[int]evidence.Wait) {
	t.Helper()
	maps, err := readMaps(r.path(pid, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	inFile := func(addr uint64) bool {
		m := mappingOf(maps, addr)
		return m != nil && m.Path == file
	}
	var traps []uint64
	var names []string
	for name, role := range roles {
		f := waits[role.TID].Futex
		if f == nil {
			continue
		}
		addr, err := strconv.ParseUint(strings.TrimPrefix(f.Addr, "0x"), 16, 64)
		if err != nil || !inFile(addr) {
			continue
		}
		names, traps = append(names, name), append(traps, addr)
		if f.Word != nil || f.Mutex != nil || f.Owner != nil || f.Unread == "" {
			t.Errorf("%s: read from the file: %+v", name, f)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"futex-private", "futex-shared", "word-private", "word-shared"}, names); diff != "" {
		t.Errorf("words in the file: %s", diff)
	}
	// The word is in ordinary memory, the stack is not.
	stack := waits[roles["stack"].TID]
	if stack.Futex == nil || stack.Futex.Word == nil || stack.Site != nil {
		t.Errorf("stack: %+v, site %+v", stack.Futex, stack.Site)
	}
	c, ok := parseCall([]byte(roles["stack"].Syscall))
	if !ok || !inFile(c.SP) {
		t.Fatalf("the stack is not in the file: %q", roles["stack"].Syscall)
	}
	for _, addr := range append(traps, c.SP) {
		hangsCareless(t, s, pid, addr)
	}
}

// A command line and an environment that begin in the dead file. The kernel
// gives neither from file-backed pages (fs/proc/base.c: FOLL_ANON, since Linux 4.17).
func TestArgvOfDeadStore(t *testing.T) {
	s := startOr(t, "fuse_memory", t.TempDir(), "argv")
	pid, err := strconv.Atoi(s.Ready)
	if err != nil {
		t.Fatal(err)
	}
	r := reader(t)
	procs := inTime(t, "the tree", func() []evidence.Process {
		procs, _ := r.Tree(context.Background(), pid, TreeOptions{Env: []string{"PATH"}})
		return procs
	})
	if len(procs) != 1 {
		t.Fatalf("%d processes, want 1", len(procs))
	}
	if len(procs[0].Argv) != 0 || len(procs[0].Env) != 0 {
		t.Errorf("read from the file: %q, %q", procs[0].Argv, procs[0].Env)
	}
	nothingLeft(t, r)
}

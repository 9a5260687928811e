package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

var groupsMade atomic.Int32

// cgroup makes a control group below our own in the hierarchy of a version 1
// controller, or in version 2 for "", and removes it with the test. Without the
// right to, the test is skipped.
func cgroup(t *testing.T, controller string) string {
	t.Helper()
	mounts, err := procfs.GetMounts()
	if err != nil {
		t.Fatal(err)
	}
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := self.Cgroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mounts {
		_, carries := m.SuperOptions[controller]
		if controller == "" && m.FSType != "cgroup2" || controller != "" && (m.FSType != "cgroup" || !carries) {
			continue
		}
		for _, g := range ours {
			if controller == "" && g.HierarchyID != 0 || controller != "" && !slices.Contains(g.Controllers, controller) {
				continue
			}
			dir := filepath.Join(m.MountPoint, strings.TrimPrefix(g.Path, strings.TrimSuffix(m.Root, "/")), fmt.Sprintf("whyhang-test-%d-%d", os.Getpid(), groupsMade.Add(1)))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Skip("control groups cannot be made here: " + err.Error())
			}
			t.Cleanup(func() { removeGroup(t, dir) })
			return dir
		}
	}
	t.Skip("no control groups of that kind are mounted here: " + controller)
	return ""
}

// removeGroup waits until the processes in it, which the test has killed, are
// gone.
func removeGroup(t *testing.T, dir string) {
	var err error
	for range 100 {
		if err = os.Remove(dir); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("a control group stays behind: %v", err)
}

// setting writes a file of a control group.
func setting(t *testing.T, dir, file, value string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, dir string, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		setting(t, dir, "cgroup.procs", strconv.Itoa(pid))
	}
}

// until waits for something the kernel does in its own time.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("not: " + what)
}

func contains(path, text string) func() bool {
	return func() bool {
		b, _ := os.ReadFile(path)
		return strings.Contains(string(b), text)
	}
}

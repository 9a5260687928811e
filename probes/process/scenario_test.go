package process

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{ChildFiles: FilesChild})
	if os.Getenv(readAsUser) != "" {
		os.Exit(readerMain())
	}
	code := m.Run()
	scenario.Remove()
	os.Exit(code)
}

// reader reads the real /proc.
func reader(tb testing.TB) *Reader {
	tb.Helper()
	r, err := NewReader("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// treeOf is the tree of a scenario.
func treeOf(tb testing.TB, r *Reader, pid int) []evidence.Process {
	tb.Helper()
	procs, run := r.Tree(context.Background(), pid, TreeOptions{})
	if len(procs) == 0 {
		tb.Fatalf("no tree of %d: %+v", pid, run)
	}
	return procs
}

// eventually repeats check until it holds.
func eventually(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if check() {
			return
		}
	}
	tb.Fatal("never happened: " + what)
}

func isRoot() bool { return os.Geteuid() == 0 }

package gpu

import (
	"os"
	"runtime"
	"testing"

	"github.com/whyhang/whyhang/probes"
)

// The child has to make its calls on the main thread; see Child.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{ChildName: Child})
	os.Exit(m.Run())
}

func start(tb testing.TB) *Probe {
	tb.Helper()
	p, err := Start(tb.TempDir()) // a /proc without a driver
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p
}

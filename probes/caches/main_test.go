package caches

import (
	"os"
	"runtime"
	"testing"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{ChildName: Child})
	code := m.Run()
	scenario.Remove()
	os.Exit(code)
}

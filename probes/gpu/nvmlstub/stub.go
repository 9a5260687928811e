package nvmlstub

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// source is the stub's source under the module's root. What it can play is
// described there.
const source = "testdata/nvml/stub.c"

// Build compiles the stub into a directory of its own and returns that: set
// LD_LIBRARY_PATH to it in the process that is to find the stub. The test is
// skipped where there is no C compiler.
func Build(tb testing.TB) (dir string) {
	tb.Helper()
	return build(tb)
}

// BuildOld is Build for an old library, which lacks several functions.
func BuildOld(tb testing.TB) (dir string) {
	tb.Helper()
	return build(tb, "-DOLD")
}

// Use makes the library in dir the one that children started by this test
// find, and sets what it plays.
func Use(tb testing.TB, dir, plays string) {
	tb.Helper()
	tb.Setenv("LD_LIBRARY_PATH", dir)
	tb.Setenv("WHYHANG_STUB_NVML", plays)
}

func build(tb testing.TB, flags ...string) string {
	tb.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		tb.Skip("no C compiler (cc): the NVML stub cannot be built")
	}
	dir := tb.TempDir()
	args := append(flags, "-O1", "-shared", "-fPIC", "-o", filepath.Join(dir, "libnvidia-ml.so.1"), filepath.Join(root(tb), source))
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		tb.Fatalf("build the NVML stub: %v\n%s", err, out)
	}
	return dir
}

// root is the module's root: tests run in their package's directory.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}

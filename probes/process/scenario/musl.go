package scenario

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// BuildMusl compiles testdata/scenarios/name.c against musl, once for each
// test binary. Without musl-gcc the test is skipped.
func BuildMusl(tb TB, name string, flags ...string) string {
	tb.Helper()
	cc, err := exec.LookPath("musl-gcc")
	if err != nil {
		tb.Skip("no musl-gcc to build scenarios with musl")
	}
	dir, err := Dir()
	if err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(dir, name+"-musl")
	_, self, _, _ := runtime.Caller(0)
	source := filepath.Join(filepath.Dir(self), "../../../testdata/scenarios", name+".c")
	once, _ := builds.LoadOrStore(out, sync.OnceValue(func() error {
		args := append([]string{"-O1", "-pthread", "-o", out, source}, flags...)
		if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("musl-gcc: %w\n%s", err, b)
		}
		return os.Chmod(out, 0o755)
	}))
	if err := once.(func() error)(); err != nil {
		tb.Fatal(err)
	}
	return out
}

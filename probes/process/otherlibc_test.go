package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// The same programs with another glibc: OTHER_GLIBC names a directory with a
// loader and a libc.so.6, such as that of an unpacked libc6 package.
func TestLocksOfAnotherGlibc(t *testing.T) {
	dir := os.Getenv("OTHER_GLIBC")
	if dir == "" {
		t.Skip("OTHER_GLIBC names no directory with another glibc")
	}
	loaders, _ := filepath.Glob(filepath.Join(dir, "ld-linux-*.so.?"))
	if len(loaders) != 1 {
		t.Fatalf("loaders in %s: %v", dir, loaders)
	}
	r := reader(t)
	start := func(name string, args ...string) (*scenario.Process, map[int]evidence.Wait) {
		args = append([]string{"--library-path", dir, scenario.Build(t, name)}, args...)
		s := scenario.StartCmd(t, nil, exec.Command(loaders[0], args...))
		return s, waitsOf(t, r, treeOf(t, r, s.PID))
	}
	for kind, lock := range map[string]evidence.LockKind{
		"normal": evidence.KindMutex, "recursive": evidence.KindMutex, "errorcheck": evidence.KindMutex, "adaptive": evidence.KindMutex,
		"pshared": evidence.KindMutex, "robust": evidence.KindRobustMutex, "pshared-robust": evidence.KindRobustMutex, "pi": evidence.KindPIMutex,
	} {
		s, waits := start("locks", kind, "sleeps")
		first, second := pair(t, s)
		w := waits[first]
		if w.Futex == nil || w.Futex.Owner == nil || w.Futex.Owner.Kind != lock || w.Futex.Owner.TID != second || w.Futex.Owner.Proof == evidence.ProofLayout {
			t.Errorf("%s: %+v", kind, w.Futex)
		}
	}
	s, waits := start("rwlocks", "writers")
	first, second := pair(t, s)
	for waiter, owner := range map[int]int{first: second, second: first} {
		if o := waits[waiter].Futex.Owner; o == nil || o.Kind != evidence.KindRWLock || o.TID != owner || o.Proof != evidence.ProofCode {
			t.Errorf("rwlock: %+v", waits[waiter].Futex)
		}
	}
	_, waits = start("join_cycle")
	joins := 0
	for _, w := range waits {
		if o := w.Futex.Owner; o != nil && o.Kind == evidence.KindThread {
			joins++
			if o.Proof != evidence.ProofKernel || o.TID == 0 || o.TID == w.TID {
				t.Errorf("join: %+v", o)
			}
		}
	}
	if joins != 1 {
		t.Errorf("%d joins, want 1: %+v", joins, waits)
	}
}

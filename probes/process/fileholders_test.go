package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wantedFile is a file by path and inode.
func wantedFile(t *testing.T, path string) WantedFile {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return WantedFile{Path: path, Inode: st.Ino, UID: int(st.Uid)}
}

// Who has a file open is told from who has another of the same name, and a lock
// from an open descriptor.
func TestFileHolders(t *testing.T) {
	dir := t.TempDir()
	var wanted []WantedFile
	var open [3]*os.File
	for i, name := range []string{"locked/lock", "open/lock", "nobody/lock"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(p)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		open[i] = f
		wanted = append(wanted, wantedFile(t, p))
	}
	open[2].Close()
	if err := unix.Flock(int(open[0].Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	r := reader(t)
	holders, unseen := r.FileHolders(wanted, 10*time.Second)
	for i, want := range []struct {
		n     int
		locks bool
	}{{1, true}, {1, false}, {0, false}} {
		if len(holders[i]) != want.n {
			t.Errorf("file %d: %+v, want %d", i, holders[i], want.n)
			continue
		}
		if want.n > 0 && (holders[i][0].PID != os.Getpid() || holders[i][0].FD != int(open[i].Fd()) || holders[i][0].Locks != want.locks) {
			t.Errorf("file %d: %+v", i, holders[i])
		}
	}
	// Processes of other users cannot have made the files.
	if unseen != "" && r.seesAll() {
		t.Errorf("unseen: %s", unseen)
	}
	if _, unseen := r.FileHolders(wanted, -time.Second); unseen == "" && len(r.pids()) > 60 {
		t.Error("a look without time sees all")
	}
}

func TestWorkMS(t *testing.T) {
	r := reader(t)
	before := r.WorkMS([]int{os.Getpid()})[os.Getpid()]
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		_ = before * before
	}
	if after := r.WorkMS([]int{os.Getpid()})[os.Getpid()]; after <= before {
		t.Errorf("%d ms, then %d ms", before, after)
	}
}

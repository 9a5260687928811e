package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestReadSymbols(t *testing.T) {
	f, err := os.Open(scenario.Build(t, "abba"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := readSymbols(f, []string{"main", "pthread_mutex_lock"})
	// The program has main; the other is only wanted, from the C library.
	if err != nil || len(found) != 1 || found[0].Name != "main" || found[0].To <= found[0].From {
		t.Errorf("%v: %+v", err, found)
	}
	if _, err := readLibcVersion(f); !errors.Is(err, syscall.ENOEXEC) {
		t.Errorf("a program that is no C library: %v", err)
	}
}

func FuzzReadSymbols(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Add([]byte("no ELF"))
	if self, err := os.ReadFile("/bin/true"); err == nil && len(self) < 1<<20 {
		f.Add(self)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, s := range first(readSymbols(bytes.NewReader(b), waitingFunctions)) {
			if s.Name == "" {
				t.Fatalf("%+v", s)
			}
		}
		readLibcVersion(bytes.NewReader(b))
	})
}

func first[T any](v []T, _ error) []T { return v }

// What the target has put in the place of a file does not hang or end the
// child.
func TestFilesChildAnswersOddFiles(t *testing.T) {
	dir := t.TempDir()
	fifo, text := filepath.Join(dir, "fifo"), filepath.Join(dir, "text")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(text, []byte("not an ELF file"), 0o600); err != nil {
		t.Fatal(err)
	}
	handle := FilesChild()
	ask := func(q fileQuestion) (fileAnswer, error) {
		b, _ := json.Marshal(q)
		a, err := handle(context.Background(), b, func(string) {})
		if err != nil {
			return fileAnswer{}, err
		}
		return a.(fileAnswer), nil
	}
	for _, tc := range []struct {
		name string
		q    fileQuestion
		want syscall.Errno
	}{
		{"symbols of a FIFO", fileQuestion{Op: opSymbols, Places: []string{fifo}}, syscall.EINVAL},
		{"version of a FIFO", fileQuestion{Op: opLibc, Places: []string{fifo}}, syscall.EINVAL},
		{"symbols of a text", fileQuestion{Op: opSymbols, Places: []string{text}}, syscall.ENOEXEC},
		{"version of a directory", fileQuestion{Op: opLibc, Places: []string{dir}}, syscall.EINVAL},
		{"size of nothing", fileQuestion{Op: opSize, Places: []string{dir + "/none"}}, syscall.ENOENT},
		{"size of no place", fileQuestion{Op: opSize}, syscall.ENOENT},
		{"weights without a root", fileQuestion{Op: opWeights, Root: dir + "/none", Path: "/"}, syscall.ENOENT},
		{"weights in a FIFO", fileQuestion{Op: opWeights, Root: dir, Path: "/fifo"}, syscall.EINVAL},
	} {
		if a, err := ask(tc.q); err != nil || syscall.Errno(a.Errno) != tc.want {
			t.Errorf("%s: %v, %v", tc.name, a.Errno, err)
		}
	}
	// The second place serves where the first does not.
	if a, err := ask(fileQuestion{Op: opSize, Places: []string{dir + "/none", text}}); err != nil || a.Size != 15 {
		t.Errorf("second place: %+v %v", a, err)
	}
	if _, err := ask(fileQuestion{Op: "else"}); err == nil {
		t.Error("an unknown question was answered")
	}
	if _, err := handle(context.Background(), []byte("{"), func(string) {}); err == nil {
		t.Error("garbage was answered")
	}
}

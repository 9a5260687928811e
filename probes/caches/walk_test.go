package caches

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// walked is a cache on disk and the walker over it.
type walked struct {
	t   *testing.T
	dir string
	w   *walker
}

func newWalked(t *testing.T, library string) *walked {
	dir := t.TempDir()
	return &walked{t, dir, &walker{lib: libraryNamed(library), top: dir}}
}

func (d *walked) write(name string, size int, age time.Duration) {
	d.t.Helper()
	p := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(p, make([]byte, size), 0o644); err != nil {
		d.t.Fatal(err)
	}
	d.age(name, age)
}

func (d *walked) age(name string, age time.Duration) {
	d.t.Helper()
	at := time.Now().Add(-age)
	if err := os.Chtimes(filepath.Join(d.dir, name), at, at); err != nil {
		d.t.Fatal(err)
	}
}

func (d *walked) look() found {
	d.t.Helper()
	fd, err := unix.Open(d.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := d.w.look(fd, func(string) {}); err != nil {
		d.t.Fatal(err)
	}
	var f found
	d.w.sum(&f)
	return f
}

func (d *walked) want(what string, files int, bytes uint64) found {
	d.t.Helper()
	f := d.look()
	if f.Files != files || f.Bytes != bytes || f.Cut {
		d.t.Errorf("%s: %d files, %d bytes, cut %v; want %d and %d", what, f.Files, f.Bytes, f.Cut, files, bytes)
	}
	return f
}

// Looks see what comes, grows, moves and goes, in directories that they have
// read before.
func TestWalkFollows(t *testing.T) {
	d := newWalked(t, "Triton")
	d.write("a/b/old", 100, time.Hour)
	d.write("a/x.lock", 0, time.Hour)
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{"a/b", "a", "."} {
		if err := os.Chtimes(filepath.Join(d.dir, dir), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if f := d.want("first", 1, 100); len(f.Locks) != 1 {
		t.Errorf("locks %+v", f.Locks)
	}
	d.write("a/y.lock", 7, 0)
	d.write("a/jit.log", 7, 0)
	d.want("again, with a lock file and a log that count for nothing", 1, 100)
	d.write("a/b/new", 50, 0)
	d.want("a new file", 2, 150)
	d.write("a/b/new", 70, 0)
	d.want("a file that is written grows", 2, 170)
	d.write("a/c/d/deep", 5, 0)
	d.want("new directories", 3, 175)
	if err := os.Rename(filepath.Join(d.dir, "a/c"), filepath.Join(d.dir, "a/e")); err != nil {
		t.Fatal(err)
	}
	d.want("a directory under a new name", 3, 175)
	if err := os.RemoveAll(filepath.Join(d.dir, "a/b")); err != nil {
		t.Fatal(err)
	}
	f := d.want("a directory that is gone", 1, 5)
	if d.w.entries != 7 {
		t.Errorf("%d entries counted, want 7 (a, x.lock, y.lock, jit.log, e, d, deep)", d.w.entries)
	}
	if age := time.Since(time.Unix(0, f.Newest)); age > time.Minute {
		t.Errorf("the newest file is %s old", age)
	}
}

// A download that was still when it was first seen is looked at each time.
func TestWalkPartial(t *testing.T) {
	d := newWalked(t, "Hugging Face hub")
	const file = "models--x/blobs/abc.incomplete"
	d.write(file, 1000, 24*time.Hour)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(d.dir, "models--x/blobs"), old, old); err != nil {
		t.Fatal(err)
	}
	d.want("first", 1, 1000)
	f, err := os.OpenFile(filepath.Join(d.dir, file), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 500)); err != nil {
		t.Fatal(err)
	}
	got := d.want("it goes on", 1, 1500)
	if len(got.Partial) != 1 || got.Partial[0].Bytes != 1500 || got.Partial[0].Path != filepath.Join(d.dir, file) {
		t.Errorf("%+v", got.Partial)
	}
}

// Links are neither followed nor counted: a hub's snapshots are made of them,
// and one may lead anywhere.
func TestWalkLinks(t *testing.T) {
	d := newWalked(t, "Triton")
	d.write("real/file", 10, 0)
	for name, to := range map[string]string{"up": "..", "self": ".", "out": "/", "file": "real/file"} {
		if err := os.Symlink(to, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(d.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.want("links", 1, 10)
}

// A cache beyond the bounds is cut, and says so; so is one that is too deep.
func TestWalkBounds(t *testing.T) {
	d := newWalked(t, "Triton")
	deep := ""
	for range 2 * maxDepth {
		deep += "d/"
	}
	d.write(deep+"file", 1, 0)
	d.want("too deep", 0, 0)
	for i := range maxEntries + 10 {
		p := filepath.Join(d.dir, fmt.Sprint("f", i))
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f := d.look(); !f.Cut || f.Files > maxEntries {
		t.Errorf("%d files, cut %v", f.Files, f.Cut)
	}
}

// A thousand lock files do not push out the one that counts.
func TestWalkLocks(t *testing.T) {
	d := newWalked(t, "torch extensions")
	d.write("ext/lock", 0, 24*time.Hour)
	if err := os.Chmod(filepath.Join(d.dir, "ext/lock"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * maxListed {
		d.write(fmt.Sprintf("ext/%d.lock", i), 0, 0)
	}
	f := d.look()
	if len(f.Locks) != maxListed || f.More != maxListed+1 || f.Locks[0].Path != filepath.Join(d.dir, "ext/lock") || !f.Locks[0].Executable {
		t.Errorf("%d locks and %d more, first %+v", len(f.Locks), f.More, f.Locks[0])
	}
}

// The cost of one look at a cache of 5,000 files in 250 directories: the first
// reads all, the later ones ask only whether the directories have changed.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	old := time.Now().Add(-time.Hour)
	for i := range 250 {
		sub := filepath.Join(dir, fmt.Sprint("kernel", i))
		if err := os.Mkdir(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		for k := range 20 {
			p := filepath.Join(sub, fmt.Sprint(k, ".cubin"))
			if err := os.WriteFile(p, []byte("x"), 0o644); err != nil {
				b.Fatal(err)
			}
			_ = os.Chtimes(p, old, old)
		}
		_ = os.Chtimes(sub, old, old)
	}
	_ = os.Chtimes(dir, old, old)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd)
	quiet := func(string) {}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			w := &walker{lib: libraryNamed("Triton"), top: dir}
			_ = w.look(fd, quiet)
		}
	})
	b.Run("again", func(b *testing.B) {
		w := &walker{lib: libraryNamed("Triton"), top: dir}
		_ = w.look(fd, quiet)
		for b.Loop() {
			_ = w.look(fd, quiet)
			var f found
			w.sum(&f)
			if f.Files != 5000 {
				b.Fatal(f.Files)
			}
		}
	})
}

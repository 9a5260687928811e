package process

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/evidence"
)

// The page cache of a model file: empty, then half of it, then all.
func TestPageCache(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const size = 64 << 20
	if err := os.Truncate(path, size); err != nil { // a hole has no pages until it is read
		t.Fatal(err)
	}
	r := reader(t)
	w, err := r.Files().Weights(context.Background(), os.Getpid(), path, "argv")
	if err != nil {
		t.Fatal(err)
	}
	f := r.OtherFiles()
	defer f.Close()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := unix.Fadvise(int(in.Fd()), 0, 0, unix.FADV_RANDOM); err != nil { // no readahead
		t.Fatal(err)
	}
	for _, share := range []uint64{0, 2, 4} {
		if share > 0 {
			if _, err := io.CopyN(io.Discard, in, size/4*2); err != nil {
				t.Fatal(err)
			}
		}
		got, unread := f.PageCache(context.Background(), os.Getpid(), w)
		if unread != nil && unread.Status == evidence.Unsupported {
			t.Skipf("%s: %s", w.FSType, unread.Why)
		}
		if got == nil || got.CachedBytes != share*size/4 || got.Files != 1 || got.At.IsZero() {
			t.Fatalf("with %d of 4 parts read: %+v, %+v", share, got, unread)
		}
	}
}

// Where opening a file would harm, or tell nothing, it is not opened.
func TestPageCacheNotAsked(t *testing.T) {
	r := reader(t)
	f := r.OtherFiles()
	defer f.Close()
	for fs, want := range map[string]evidence.Status{"fuse.s3fs": evidence.Skipped, "virtiofs": evidence.Skipped, "": evidence.Skipped, "overlay": evidence.Unsupported} {
		got, unread := f.PageCache(context.Background(), os.Getpid(), &evidence.Weights{Path: "/m", FSType: fs, Files: []evidence.WeightFile{{Path: "/m/x.gguf"}}})
		if got != nil || unread == nil || unread.Status != want || unread.Why == "" {
			t.Errorf("%q: %+v, %+v", fs, got, unread)
		}
	}
	got, unread := f.PageCache(context.Background(), os.Getpid(), &evidence.Weights{Path: "/m", FSType: "ext4", Files: []evidence.WeightFile{{Path: "/m/not-there.gguf"}}})
	if got != nil || unread == nil || unread.Status == evidence.OK {
		t.Errorf("a file that is not there: %+v, %+v", got, unread)
	}
}

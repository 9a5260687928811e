package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// modelDir makes files of the given sizes; a size below 0 makes a directory, a
// link is "name -> target".
func modelDir(t *testing.T, dir string, files map[string]int64) {
	t.Helper()
	for name, size := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func TestWeights(t *testing.T) {
	const mb = 1 << 20
	dir := t.TempDir()
	d := func(p string) string { return filepath.Join(dir, p) }
	modelDir(t, dir, map[string]int64{
		"hf/model-00001-of-00002.safetensors": 3 * mb, "hf/model-00002-of-00002.safetensors": 2 * mb,
		"hf/consolidated.safetensors": 5 * mb, "hf/pytorch_model.bin": 100 * mb, "hf/tokenizer.json": mb,
		"indexed/a.safetensors": mb, "indexed/b.safetensors": 2 * mb, "indexed/left-over.safetensors": 9 * mb,
		"pickle/pytorch_model-00001-of-00001.bin": 70 * mb, "pickle/training_args.bin": 4096,
		"gguf/q-00001-of-00002.gguf": mb, "gguf/q-00002-of-00002.gguf": mb, "gguf/other.gguf": mb,
		"empty/config.json": 10,
		"cache/blobs/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef": 7 * mb,
	})
	if err := os.WriteFile(d("indexed/model.safetensors.index.json"), []byte(`{"weight_map":{"x":"a.safetensors","y":"b.safetensors","z":"a.safetensors"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	link(t, "../../blobs/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", d("cache/snapshots/1/model.safetensors"))
	link(t, d("hf"), d("link"))
	link(t, "nowhere", d("cache/snapshots/1/gone.safetensors"))

	r := reader(t)
	for _, tc := range []struct {
		path, format string
		total        uint64
		files        []string
	}{
		{"hf", "safetensors", 5 * mb, []string{"hf/model-00001-of-00002.safetensors", "hf/model-00002-of-00002.safetensors"}},
		{"link", "safetensors", 5 * mb, []string{"link/model-00001-of-00002.safetensors", "link/model-00002-of-00002.safetensors"}},
		{"indexed", "safetensors", 3 * mb, []string{"indexed/a.safetensors", "indexed/b.safetensors"}},
		{"pickle", "bin", 70 * mb, []string{"pickle/pytorch_model-00001-of-00001.bin"}},
		{"gguf/q-00001-of-00002.gguf", "gguf", 2 * mb, []string{"gguf/q-00001-of-00002.gguf", "gguf/q-00002-of-00002.gguf"}},
		{"gguf/other.gguf", "gguf", mb, []string{"gguf/other.gguf"}},
		{"gguf", "gguf", 3 * mb, []string{"gguf/other.gguf", "gguf/q-00001-of-00002.gguf", "gguf/q-00002-of-00002.gguf"}},
		{"cache/snapshots/1", "safetensors", 7 * mb, []string{"cache/snapshots/1/model.safetensors"}},
		{"empty", "", 0, nil},
	} {
		w, err := r.Files().Weights(context.Background(), os.Getpid(), d(tc.path), "argv --model-path")
		if err != nil {
			t.Errorf("%s: %v", tc.path, err)
			continue
		}
		var files []string
		for _, f := range w.Files {
			rel, _ := filepath.Rel(dir, f.Path)
			files = append(files, rel)
		}
		if diff := cmp.Diff(tc.files, files); diff != "" || w.TotalBytes != tc.total || w.Format != tc.format || w.FoundBy != "argv --model-path" || w.FSType == "" {
			t.Errorf("%s: %+v (-want +got):\n%s", tc.path, w, diff)
		}
	}
	// A link is resolved to the name under which the file shows when mapped.
	w, err := r.Files().Weights(context.Background(), os.Getpid(), d("cache/snapshots/1"), "")
	if err != nil || w.Files[0].RealPath != d("cache/blobs/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") {
		t.Errorf("%v: %+v", err, w)
	}
	for _, p := range []string{d("none"), "org/model-name", ""} {
		if _, err := r.Files().Weights(context.Background(), os.Getpid(), p, ""); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

// Links are resolved below the root directory of the process, not below ours.
func TestListWeightsStaysBelowRoot(t *testing.T) {
	root := t.TempDir()
	modelDir(t, root, map[string]int64{"data/w.safetensors": 1 << 20})
	link(t, "/data/w.safetensors", filepath.Join(root, "models/m/w.safetensors"))
	link(t, "../../../../../../../../data/w.safetensors", filepath.Join(root, "models/m/up.safetensors"))
	a, err := listWeights(root, "/models/m", func(string) {})
	if err != nil || len(a.Weights) != 2 || a.Weights[0].SizeBytes != 1<<20 || a.Weights[1].SizeBytes != 1<<20 {
		t.Errorf("%v: %+v", err, a)
	}
}

func TestChoose(t *testing.T) {
	files := func(names ...string) (all []evidence.WeightFile) {
		for _, n := range names {
			all = append(all, evidence.WeightFile{Path: "/m/" + n})
		}
		return all
	}
	for _, tc := range []struct {
		name      string
		in        []evidence.WeightFile
		index     map[string]bool
		wantFirst string
		want      int
	}{
		{"only the original set", files("consolidated.00.pth", "consolidated.01.pth"), nil, "/m/consolidated.00.pth", 2},
		{"an index of files that are not there", files("a.safetensors"), map[string]bool{"b.safetensors": true}, "/m/a.safetensors", 1},
		{"nothing", nil, nil, "", 0},
	} {
		got := choose(tc.in, tc.index)
		if len(got) != tc.want || tc.want > 0 && got[0].Path != tc.wantFirst {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

func TestFSTypeOf(t *testing.T) {
	mounts := []mount{{Point: "/", FSType: "overlay"}, {Point: "/mnt", FSType: "ext4"}, {Point: "/mnt/models", FSType: "nfs4"}, {Point: "/mnt/models", FSType: "fuse.s3"}}
	for path, want := range map[string]string{"/x": "overlay", "/mnt/a": "ext4", "/mnt/models/m": "fuse.s3", "/mnt/models": "fuse.s3", "/mnt/models2/m": "ext4", "": ""} {
		if got := fsTypeOf(mounts, path); got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if unescape(`/a\040b\134c`) != `/a b\c` || hexDevice("0:25") != "00:19" || hexDevice("x") != "" {
		t.Error("escapes and devices")
	}
}

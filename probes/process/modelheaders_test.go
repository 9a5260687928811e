package process

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// safetensorsFile begins a file as the format says.
func safetensorsFile(header string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

// ggufFile is a version 3 file: pairs of several kinds and these tensors.
type ggufTensor struct {
	name   string
	dims   []uint64
	kind   uint32
	offset uint64
}

func ggufFile(version uint32, alignment uint32, tensors ...ggufTensor) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("GGUF"), version)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, 4)
	text := func(s string) { b = append(le.AppendUint64(b, uint64(len(s))), s...) }
	text("general.architecture")
	b = le.AppendUint32(b, ggufString)
	text("llama")
	text("tokenizer.ggml.tokens")
	b = le.AppendUint32(b, ggufArray)
	b = le.AppendUint32(b, ggufString)
	b = le.AppendUint64(b, 2)
	text("a")
	text(strings.Repeat("b", 300))
	text("tokenizer.ggml.scores")
	b = le.AppendUint32(b, ggufArray)
	b = le.AppendUint32(b, 6)
	b = le.AppendUint64(b, 3)
	b = append(b, make([]byte, 12)...)
	text("general.alignment")
	b = le.AppendUint32(b, 4)
	b = le.AppendUint32(b, alignment)
	for _, t := range tensors {
		text(t.name)
		b = le.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = le.AppendUint64(b, d)
		}
		b = le.AppendUint32(b, t.kind)
		b = le.AppendUint64(b, t.offset)
	}
	return b
}

func TestReadModelHeader(t *testing.T) {
	two := safetensorsFile(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]},"b":{"dtype":"F32","shape":[2],"data_offsets":[64,72]}}`)
	odd := safetensorsFile(`{"a":{"dtype":"x y","shape":[1],"data_offsets":[0,8]}}`)
	gguf := ggufFile(3, 64, ggufTensor{"x", []uint64{256, 2}, 12, 0}, ggufTensor{"y", []uint64{3}, 0, 320}, ggufTensor{"new", []uint64{9}, 77, 400})
	up := func(n, to int) uint64 { return uint64((n + to - 1) / to * to) }
	for _, tc := range []struct {
		name     string
		file     []byte
		expected uint64
		tensors  int
		dtypes   map[string]uint64
		problem  string
	}{
		{"safetensors", two, uint64(len(two)) + 72, 2, map[string]uint64{"BF16": 64, "F32": 8}, ""},
		{"a strange type", odd, uint64(len(odd)) + 8, 1, map[string]uint64{"other": 8}, ""},
		{"no tensors", safetensorsFile(`{}`), 10, 0, nil, ""},
		{"cut in the header", two[:60], uint64(len(two)), 0, nil, "the file ends within its header"},
		{"places backwards", safetensorsFile(`{"a":{"dtype":"F32","data_offsets":[8,0]}}`), 50, 0, nil, "impossible place"},
		{"places beyond all", safetensorsFile(`{"a":{"dtype":"F32","data_offsets":[0,18446744073709551615]}}`), 69, 0, nil, "impossible place"},
		{"no JSON", safetensorsFile(`{hello}`), 15, 0, nil, "cannot be read"},
		{"zeros", make([]byte, 4096), 0, 0, nil, "neither"},
		{"a huge length", append([]byte{0, 0, 0, 0, 0, 0, 0, 9}, "{}"...), 0, 0, nil, "neither"},
		{"empty", nil, 0, 0, nil, "neither"},
		{"gguf", gguf, up(len(gguf), 64) + 400, 3, map[string]uint64{"Q4_K": 288, "F32": 12, "other": 0}, ""},
		{"gguf without tensors", ggufFile(2, 32), uint64(len(ggufFile(2, 32))), 0, nil, ""},
		{"gguf cut", gguf[:len(gguf)-20], uint64(len(gguf) - 20), 2, map[string]uint64{"Q4_K": 288, "F32": 12}, "ends within its header"},
		{"gguf of version 1", ggufFile(1, 32), 0, 0, nil, "version 1"},
		{"a tensor too large", ggufFile(3, 32, ggufTensor{"x", []uint64{1 << 40, 1 << 40}, 0, 0}), 0, 0, nil, "impossibly large"},
	} {
		h, err := readModelHeader(bytes.NewReader(tc.file))
		if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if tc.problem == "impossibly large" {
			continue
		}
		if h.Expected != tc.expected || h.Tensors != tc.tensors || !cmp.Equal(h.DTypes, tc.dtypes) {
			t.Errorf("%s: %+v", tc.name, h)
		}
	}
}

// The headers of a directory in which one file is cut off, one is of another
// format, and one part has not come.
func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	whole := append(safetensorsFile(`{"a":{"dtype":"F16","shape":[512],"data_offsets":[0,1024]}}`), make([]byte, 1024)...)
	for name, b := range map[string][]byte{
		"model-00001-of-00003.safetensors": whole,
		"model-00002-of-00003.safetensors": whole[:len(whole)-1000],
		"model.safetensors.index.json":     []byte(`{"metadata":{"total_size":3072},"weight_map":{"a":"model-00001-of-00003.safetensors","b":"model-00002-of-00003.safetensors","c":"model-00003-of-00003.safetensors"}}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t)
	w, err := r.Files().Weights(context.Background(), os.Getpid(), dir, "argv")
	if err != nil {
		t.Fatal(err)
	}
	f := r.OtherFiles()
	defer f.Close()
	with, err := f.Headers(context.Background(), os.Getpid(), w)
	if err != nil || with.Unread != nil {
		t.Fatal(err, with.Unread)
	}
	size := uint64(len(whole))
	want := *w
	want.Files = []evidence.WeightFile{w.Files[0], w.Files[1]}
	for i := range want.Files {
		want.Files[i].Header = &evidence.WeightHeader{ExpectedBytes: size, Tensors: 1}
	}
	want.DTypeBytes, want.ExpectedBytes = map[string]uint64{"F16": 2048}, 3072
	want.Missing, want.MissingCount, want.IndexBytes = []string{"model-00003-of-00003.safetensors"}, 1, 3072
	if d := cmp.Diff(&want, with); d != "" {
		t.Error(d)
	}
	if w.Files[0].Header != nil {
		t.Error("the list was changed as well")
	}
}

func TestMissing(t *testing.T) {
	files := func(names ...string) (all []evidence.WeightFile) {
		for _, n := range names {
			all = append(all, evidence.WeightFile{Path: "/m/" + n})
		}
		return all
	}
	index := func(names ...string) *modelIndex {
		i := &modelIndex{names: map[string]bool{}}
		for _, n := range names {
			i.names[n] = true
		}
		return i
	}
	for _, tc := range []struct {
		name  string
		found []evidence.WeightFile
		index *modelIndex
		want  []string
	}{
		{"all there", files("q-00001-of-00002.gguf", "q-00002-of-00002.gguf"), nil, nil},
		{"a part of a GGUF", files("q-00001-of-00003.gguf", "q-00003-of-00003.gguf"), nil, []string{"q-00002-of-00003.gguf"}},
		{"counted from zero", files("q-00000-of-00002.gguf", "q-00001-of-00002.gguf"), nil, nil},
		{"named by the index", files("a.safetensors"), index("a.safetensors", "b.safetensors"), []string{"b.safetensors"}},
		{"an index of other files", files("consolidated.safetensors"), index("model-00001-of-00002.safetensors"), nil},
		{"a number beyond all", files("q-00001-of-99999.gguf"), nil, nil},
		{"one file", files("model.safetensors"), nil, nil},
	} {
		var got []string
		if p := missing(tc.found, tc.index); p != nil {
			got = p.Names
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.name, d)
		}
	}
}

func FuzzModelHeader(f *testing.F) {
	f.Add(safetensorsFile(`{"a":{"dtype":"BF16","shape":[4,8],"data_offsets":[0,64]}}`))
	f.Add(safetensorsFile(`{"__metadata__":{"format":"pt"}}`))
	f.Add(ggufFile(3, 32, ggufTensor{"x", []uint64{256, 2}, 12, 0}))
	f.Add(ggufFile(2, 0))
	f.Add([]byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := readModelHeader(bytes.NewReader(b))
		if len(h.DTypes) > maxDTypes {
			t.Errorf("%d types", len(h.DTypes))
		}
		if err == nil && h.Expected > 1<<63 {
			t.Errorf("%d bytes", h.Expected)
		}
	})
}

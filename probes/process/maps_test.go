package process

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mapsText = `55d0c0a00000-55d0c0a01000 r--p 00000000 fe:00 1234                       /usr/bin/server
55d0c0a01000-55d0c0a02000 rw-p 00001000 fe:00 1234                       /usr/bin/server
55d0c1000000-55d0c1100000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0040000000 r--s 00000000 00:2a 99                         /mnt/models/two  spaces/a b.safetensors
7f0040000000-7f0080000000 r--s 40000000 00:2a 99                         /mnt/models/two  spaces/a b.safetensors
7f0080000000-7f0080001000 rw-s 00000000 00:01 7                          /memfd:x (deleted)
7f0080001000-7f0080002000 rw-p 00000000 00:00 0 
7f0080002000-7f0080003000 r-xp 00000000 fe:00 5                          /tmp/new\012line (deleted)
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`

func TestParseMaps(t *testing.T) {
	got, err := parseMaps(strings.NewReader("garbage\n\n" + mapsText))
	if err != nil {
		t.Fatal(err)
	}
	want := []mapping{
		{Start: 0x55d0c0a00000, End: 0x55d0c0a01000, Read: true, Device: "fe:00", Inode: 1234, Path: "/usr/bin/server"},
		{Start: 0x55d0c0a01000, End: 0x55d0c0a02000, Offset: 0x1000, Read: true, Write: true, Device: "fe:00", Inode: 1234, Path: "/usr/bin/server"},
		{Start: 0x55d0c1000000, End: 0x55d0c1100000, Read: true, Write: true, Device: "00:00", Path: "[heap]"},
		{Start: 0x7f0000000000, End: 0x7f0040000000, Read: true, Shared: true, Device: "00:2a", Inode: 99, Path: "/mnt/models/two  spaces/a b.safetensors"},
		{Start: 0x7f0040000000, End: 0x7f0080000000, Offset: 0x40000000, Read: true, Shared: true, Device: "00:2a", Inode: 99, Path: "/mnt/models/two  spaces/a b.safetensors"},
		{Start: 0x7f0080000000, End: 0x7f0080001000, Read: true, Write: true, Shared: true, Device: "00:01", Inode: 7, Path: "/memfd:x", Deleted: true},
		{Start: 0x7f0080001000, End: 0x7f0080002000, Read: true, Write: true, Device: "00:00"},
		{Start: 0x7f0080002000, End: 0x7f0080003000, Read: true, Execute: true, Device: "fe:00", Inode: 5, Path: "/tmp/new\nline", Deleted: true},
		{Start: 0xffffffffff600000, End: 0xffffffffff601000, Execute: true, Device: "00:00", Path: "[vsyscall]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		addr uint64
		path string
		hit  bool
	}{
		{0x55d0c0a00000, "/usr/bin/server", true}, {0x55d0c0a01fff, "/usr/bin/server", true},
		{0x55d0c0a02000, "", false}, {0, "", false}, {0x55d0c1000010, "[heap]", true}, {1<<64 - 1, "", false},
	} {
		m := mappingOf(got, tc.addr)
		if (m != nil) != tc.hit || m != nil && m.Path != tc.path {
			t.Errorf("0x%x is in %+v", tc.addr, m)
		}
	}
}

func FuzzParseMaps(f *testing.F) {
	f.Add([]byte(mapsText))
	f.Add([]byte("1-2 rwxp 0 0:0 0"))
	f.Add([]byte("2-1 rwxp 0 0:0 0 x\n-- \n1-2 r 0 0:0 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		maps, _ := parseMaps(bytes.NewReader(b))
		for _, m := range maps {
			if m.End <= m.Start {
				t.Fatalf("accepted %+v", m)
			}
			mappingOf(maps, m.Start) // may miss: hostile lines are in no order
		}
		libraries(maps)
		libcFile(maps)
		parseSmaps(bytes.NewReader(b), func(string) bool { return true })
	})
}

func TestParseSmaps(t *testing.T) {
	const text = `7f0000000000-7f0040000000 r--s 00000000 00:2a 99                         /m/a.safetensors
Size:            1048576 kB
KernelPageSize:        4 kB
Rss:              204800 kB
Pss:               99999 kB
VmFlags: rd mr mw me ac sd
7f0040000000-7f0080000000 r--s 40000000 00:2a 99                         /m/a.safetensors
Rss:                 100 kB
7f0080001000-7f0080002000 rw-p 00000000 00:00 0
Rss:                   4 kB
7f0080002000-7f0080003000 r--p 00000000 00:2a 98                         /m/b.json
Rss:                   8 kB
7f0080003000-7f0080004000 r--p 00000000 00:2a 97                         /m/c.gguf
Rss:                   0 kB
`
	got, err := parseSmaps(strings.NewReader(text), func(p string) bool { return !strings.HasSuffix(p, ".json") })
	want := map[string]uint64{"/m/a.safetensors": 204900 << 10, "/m/c.gguf": 0}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestLibraries(t *testing.T) {
	maps := []mapping{
		{Path: "/usr/lib/x86_64-linux-gnu/libc.so.6"}, {Path: "/usr/lib/libcuda.so.550.54"}, {Path: "/usr/lib/libcuda.so.550.54"},
		{Path: "/v/torch/lib/libtorch_cpu.so"}, {Path: "/v/lib/libpython3.12.so.1.0"}, {Path: "/v/llama_cpp/lib/libggml-cuda.so"},
		{Path: "/v/json.so"}, {Path: "[heap]"}, {Path: "/models/llama.gguf"},
	}
	want := []string{"libcuda.so.550.54", "libggml-cuda.so", "libpython3.12.so.1.0", "libtorch_cpu.so"}
	if diff := cmp.Diff(want, libraries(maps)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLibcFile(t *testing.T) {
	for _, tc := range []struct {
		path, version string
		found, musl   bool
	}{
		{"/lib/x86_64-linux-gnu/libc.so.6", "", true, false},
		{"/lib/x86_64-linux-gnu/libc-2.31.so", "2.31", true, false},
		{"/lib/ld-musl-x86_64.so.1", "", true, true},
		{"/lib/libcap.so.2", "", false, false},
		{"/lib/libc-client.so", "", false, false},
	} {
		m, musl := libcFile([]mapping{{Path: "[heap]"}, {Path: tc.path}})
		if (m != nil) != tc.found || musl != tc.musl {
			t.Errorf("%s: %v %v", tc.path, m, musl)
		}
		if m != nil {
			if v, _ := glibcVersion(strings.TrimPrefix(m.Path[strings.LastIndexByte(m.Path, '/'):], "/")); v != tc.version {
				t.Errorf("%s: version %q", tc.path, v)
			}
		}
	}
}

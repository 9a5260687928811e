package process

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestEndsWithCall(t *testing.T) {
	for code, want := range map[string]bool{
		"0000e811223344": true,  // call rel32
		"0000000000ffd0": true,  // call rax
		"0000000041ffd4": true,  // call r12
		"00ff1511223344": true,  // call [rip+disp32]
		"00ff9311223344": true,  // call [rbx+disp32]
		"00000000ff5308": true,  // call [rbx+8]
		"000000ff542408": true,  // call [rsp+8]
		"00000000ff1424": true,  // call [rsp]
		"ff942411223344": true,  // call [rsp+disp32]
		"0000e911223344": false, // jmp
		"0000000000ffe0": false, // jmp rax
		"00000000004889": false,
		"0000000000ff10": true,  // call [rax]
		"00000000ff1011": false, // one byte too long
	} {
		b, err := hex.DecodeString(code)
		if err != nil {
			t.Fatal(err)
		}
		if got := endsWithCallX86([7]byte(b)); got != want {
			t.Errorf("%s: %v", code, got)
		}
	}
	for instruction, want := range map[uint32]bool{
		0x94000010: true,  // bl
		0xd63f0100: true,  // blr x8
		0xd73f0909: true,  // blraa x8, x9
		0xd63f091f: true,  // blraaz x8
		0x14000010: false, // b
		0xd61f0100: false, // br x8
		0xd65f03c0: false, // ret
	} {
		if got := isCallARM64(instruction); got != want {
			t.Errorf("%#x: %v", instruction, got)
		}
	}
}

func TestReadableName(t *testing.T) {
	for name, want := range map[string]string{
		"pthread_mutex_lock":                              "pthread_mutex_lock",
		"_ZN4c10d16ProcessGroupNCCL4waitEv":               "c10d::ProcessGroupNCCL::wait",
		"_ZNSt6thread4joinEv":                             "std::thread::join",
		"_RNvNtCs1234_7mycrate3foo3bar":                   "mycrate::foo::bar",
		"_ZN4core3ptr13drop_in_place17h0123456789abcdefE": "core::ptr::drop_in_place",
		"a\x1b[31mred":                                    "a?[31mred",
	} {
		if got := readableName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := readableName(strings.Repeat("x", 5000)); len(got) > maxFunction+3 {
		t.Errorf("%d bytes", len(got))
	}
}

// Every function of the test binary is found by an offset in it.
func TestFunctionsAt(t *testing.T) {
	path := scenario.Build(t, "locks")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	var offsets []uint64
	want := map[uint64]string{}
	for _, s := range symbols {
		if at, ok := fileOffset(e, s.Value); ok && elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 1 && s.Section != elf.SHN_UNDEF {
			offsets = append(offsets, at+1)
			want[at+1] = s.Name
		}
	}
	offsets = append(offsets, 1<<40)
	found, err := functionsAt(f, offsets)
	if err != nil || len(found) != len(offsets) {
		t.Fatalf("%d of %d: %v", len(found), len(offsets), err)
	}
	for _, fn := range found {
		if fn.Name != want[fn.At] {
			t.Errorf("at %#x: %q, want %q", fn.At, fn.Name, want[fn.At])
		}
	}
	if !slices.Contains([]string{"first", "second"}, want[offsets[0]]) && len(want) < 8 {
		t.Errorf("only %d functions looked for", len(want))
	}
}

// A file that cannot be read is asked for once.
func TestUnreadModuleIsNotAskedAgain(t *testing.T) {
	r := reader(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "lib.so")
	if err := os.WriteFile(text, []byte("no ELF file"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := r.files.moduleOf("key", &mapping{Path: text}, []string{text})
	m.wanted[10] = true
	r.files.nameFunctions(context.Background(), m)
	if !m.unread || len(m.known) != 0 {
		t.Fatalf("%+v", m)
	}
	if s := siteOf([]codePlace{{module: m, offset: 10}}); s == nil || s.Module != "lib.so" || s.OffsetBytes != 10 || s.Function != "" {
		t.Errorf("site: %+v", s)
	}
	if err := os.Remove(text); err != nil {
		t.Fatal(err)
	}
	if again := r.files.moduleOf("key", &mapping{Path: text}, []string{text}); again != m {
		t.Error("what is known was forgotten")
	}
}

func FuzzFunctionsAt(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"), uint64(100))
	if self, err := os.ReadFile("/bin/true"); err == nil && len(self) < 1<<20 {
		f.Add(self, uint64(0x2000))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		found, err := functionsAt(bytes.NewReader(b), []uint64{at, at + 1, 64})
		if err == nil && len(found) != 3 {
			t.Fatalf("%+v", found)
		}
		for _, fn := range found {
			if len(fn.Name) > maxFunction+3 {
				t.Fatalf("%d bytes", len(fn.Name))
			}
		}
	})
}

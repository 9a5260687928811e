package python

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The layouts are those of the headers that are installed here.
func TestLayoutsOfHeaders(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler (cc)")
	}
	home, _ := os.UserHomeDir()
	var headers []string
	for _, pattern := range []string{home + "/.pyenv/versions/3.*/include/python3.*", "/usr/include/python3.*"} {
		found, _ := filepath.Glob(pattern)
		headers = append(headers, found...)
	}
	compared := 0
	for _, dir := range headers {
		l, ok := layoutOf(VersionOfName(dir))
		if _, err := os.Stat(dir + "/internal/pycore_runtime.h"); !ok || err != nil {
			continue
		}
		exe := filepath.Join(t.TempDir(), "offsets")
		if out, err := exec.Command(cc, "-w", "-DPy_BUILD_CORE", "-I"+dir, "-I"+dir+"/internal", "-o", exe, "testdata/offsets.c").CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", dir, err, out)
			continue
		}
		out, err := exec.Command(exe).Output()
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		compared++
		want := map[string]uint64{}
		for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
			var name string
			var value uint64
			if _, err := fmt.Sscan(lines.Text(), &name, &value); err != nil {
				t.Fatal(err)
			}
			want[name] = value
		}
		if want["blockBytes"] != 0 && want["blockBytes"] != blockBytes {
			t.Errorf("%s: a block has %d bytes", dir, want["blockBytes"])
		}
		delete(want, "blockBytes")
		if v := reflect.ValueOf(l); v.IsValid() {
			for name, value := range want {
				if field := v.FieldByName(name); !field.IsValid() || field.Uint() != value {
					t.Errorf("%s: %s is %v, want %d", dir, name, field, value)
				}
			}
			for n := range v.NumField() {
				name := v.Type().Field(n).Name
				if v.Field(n).Kind() == reflect.Uint64 && !v.Field(n).IsZero() && want[name] == 0 && !strings.HasSuffix(name, "Next") && v.Field(n).Uint() != want[name] {
					t.Errorf("%s: %s is %d, which no header says", dir, name, v.Field(n).Uint())
				}
			}
		}
		derived := l
		if derived.derive(); l.codeExceptions != 0 && derived != l {
			t.Errorf("%s: derived %+v, want %+v", dir, derived, l)
		}
	}
	if compared == 0 {
		t.Skip("no headers of CPython 3.10 to 3.12 with internal ones")
	}
	t.Logf("%d compared", compared)
}

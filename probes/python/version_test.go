package python

import "testing"

func TestVersionOfName(t *testing.T) {
	for name, want := range map[string]Version{
		"/usr/bin/python3.10":                      {3, 10, false},
		"/usr/lib/libpython3.11.so.1.0":            {3, 11, false},
		"/opt/conda/lib/libpython3.12.so":          {3, 12, false},
		"/usr/bin/python3.13t":                     {3, 13, true},
		"/x/libpython3.14t.so.1.0":                 {3, 14, true},
		"/x/libpython3.14td.so.1.0":                {3, 14, true},
		"/x/_ssl.cpython-310-x86_64-linux-gnu.so":  {3, 10, false},
		"/x/_ssl.cpython-313t-x86_64-linux-gnu.so": {3, 13, true},
		"/usr/bin/python3":                         {},
		"/usr/lib/libpython3.so":                   {},
		"/usr/bin/python3.11-config":               {},
		"python2.7":                                {2, 7, false},
		"/x/my.cpython-script.py":                  {},
		"":                                         {},
	} {
		if got := VersionOfName(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestVersionOfHex(t *testing.T) {
	for hex, want := range map[uint64]Version{
		0x030b07f0: {3, 11, false},
		0x030e00a1: {3, 14, false},
		0:          {},
		0x020712f0: {},
		1 << 40:    {},
	} {
		if got := VersionOfHex(hex); got != want {
			t.Errorf("%#x: %+v, want %+v", hex, got, want)
		}
	}
}

func FuzzVersionOfName(f *testing.F) {
	f.Add("/usr/lib/libpython3.11.so.1.0")
	f.Add("_ssl.cpython-310-x86_64-linux-gnu.so")
	f.Fuzz(func(t *testing.T, name string) {
		if v := VersionOfName(name); v.Major < 0 || v.Major > 9 || v.Minor < 0 || v.Minor > 99 {
			t.Errorf("%q: %+v", name, v)
		}
	})
}

package gpu

import (
	"strings"
	"testing"
)

func TestModuleVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n": "535.104.05",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build  (dvs-builder@U22)  Tue Mar  3 2026\n":                                     "595.45.04",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.42.01\n":                                                                                                 "470.42.01",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82\n":                                                                                                    "580.82",
		"GCC version:  gcc version 511.40.0\nNVRM version: 535.104.05\n":                                                                                              "",
		"NVRM version: soon": "",
		"":                   "",
	} {
		if got := moduleVersion(text); got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func FuzzModuleVersion(f *testing.F) {
	f.Add("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
	f.Fuzz(func(t *testing.T, s string) {
		if v := moduleVersion(s); len(v) > 12 || !strings.Contains(s, v) {
			t.Errorf("%q gives %q", s, v)
		}
	})
}

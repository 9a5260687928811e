package gpu

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// versionNumber is a driver version, as in 595.45.04.
var versionNumber = regexp.MustCompile(`\b\d{3,4}\.\d{2,3}(\.\d{2,3})?\b`)

// kernelModule is the version of the NVIDIA kernel module in
// driver/nvidia/version, "" if there is none. The file is answered without the
// locks that NVML calls wait for (kernel-open/nvidia/nv-procfs.c), so it tells
// a driver that is there and stuck from one that is not there.
func kernelModule(procDir string) string {
	answer := make(chan string, 1)
	go func() {
		b, err := os.ReadFile(filepath.Join(procDir, "driver/nvidia/version"))
		if err != nil {
			answer <- ""
			return
		}
		answer <- moduleVersion(string(b))
	}()
	select {
	case v := <-answer:
		return v
	case <-time.After(500 * time.Millisecond):
		return ""
	}
}

// moduleVersion finds the version in the line that begins with "NVRM version:".
// The words around it differ between the open and the closed module.
func moduleVersion(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if !strings.HasPrefix(line, "NVRM version:") {
		return ""
	}
	return versionNumber.FindString(line)
}

package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// cpuDir is where the kernel shows how processors are clocked
// (Documentation/admin-guide/pm/cpufreq.rst). Virtual machines mostly have
// nothing there.
const cpuDir = "/sys/devices/system/cpu/cpufreq"

// maxPolicies bounds how many groups of processors are read: large machines
// have one for each of 512.
const maxPolicies = 2048

// CPUClocks reads how fast the processors may run, alike ones together. None of
// these files asks the hardware. Empty where the kernel does not steer the clocks.
func (r *Reader) CPUClocks() ([]evidence.CPUClock, *evidence.Unread) {
	dir := r.root + cpuDir
	entries, err := os.ReadDir(dir)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, &evidence.Unread{What: cpuDir, Status: evidence.Unsupported, Why: "the kernel does not steer the clocks of the processors here; the host of a virtual machine may"}
		}
		return nil, &evidence.Unread{What: cpuDir, Status: evidence.Failed, Why: err.Error()}
	}
	var all []evidence.CPUClock
	for _, e := range entries[:min(len(entries), maxPolicies)] {
		if !strings.HasPrefix(e.Name(), "policy") {
			continue
		}
		word := func(name string) string {
			b, _ := readSmall(filepath.Join(dir, e.Name(), name))
			return strings.TrimSpace(string(b[:min(len(b), 4096)]))
		}
		kHz := func(name string) int { n, _ := strconv.Atoi(word(name)); return n }
		c := evidence.CPUClock{Driver: short(word("scaling_driver")), Governor: short(word("scaling_governor")),
			LowestKHz: kHz("cpuinfo_min_freq"), MostKHz: kHz("scaling_max_freq"), HardwareKHz: kHz("cpuinfo_max_freq")}
		cpus := max(1, len(strings.Fields(word("affected_cpus"))))
		if at := slices.IndexFunc(all, func(o evidence.CPUClock) bool { o.CPUs = 0; return o == c }); at >= 0 {
			all[at].CPUs += cpus
			continue
		}
		c.CPUs = cpus
		all = append(all, c)
	}
	return all, nil
}

// short bounds a word of a driver.
func short(s string) string { return s[:min(len(s), 32)] }

package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestCPUClocks(t *testing.T) {
	policy := func(files map[string]string, n, cpus, governor, most string) {
		dir := "/sys/devices/system/cpu/cpufreq/policy" + n + "/"
		for name, text := range map[string]string{"affected_cpus": cpus, "scaling_driver": "acpi-cpufreq", "scaling_governor": governor,
			"cpuinfo_min_freq": "1200000", "cpuinfo_max_freq": "3600000", "scaling_max_freq": most} {
			files[dir+name] = text + "\n"
		}
	}
	files := map[string]string{"/sys/devices/system/cpu/cpufreq/boost": "1\n"}
	policy(files, "0", "0 1", "powersave", "3600000")
	policy(files, "2", "2 3", "powersave", "3600000")
	policy(files, "4", "4", "performance", "2000000")
	clocks, unread := fixture(t, "", files).CPUClocks()
	if unread != nil {
		t.Fatal(unread)
	}
	want := []evidence.CPUClock{
		{CPUs: 4, Driver: "acpi-cpufreq", Governor: "powersave", LowestKHz: 1200000, MostKHz: 3600000, HardwareKHz: 3600000},
		{CPUs: 1, Driver: "acpi-cpufreq", Governor: "performance", LowestKHz: 1200000, MostKHz: 2000000, HardwareKHz: 3600000},
	}
	if diff := cmp.Diff(want, clocks); diff != "" {
		t.Error(diff)
	}
	if clocks, unread := fixture(t, "", nil).CPUClocks(); clocks != nil || unread == nil || unread.Status != evidence.Unsupported {
		t.Errorf("without cpufreq: %v, %v; want unsupported", clocks, unread)
	}
}

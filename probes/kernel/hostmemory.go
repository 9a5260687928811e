package kernel

import (
	"bytes"

	"github.com/whyhang/whyhang/probes/evidence"
)

// memInfo reads the lines of /proc/meminfo that are kept; they are in kB.
func memInfo(b []byte, f *evidence.KernelFrame) {
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		v, ok := number(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB"))))
		if !ok || v > 1<<53 {
			continue
		}
		v <<= 10
		switch string(name) {
		case "MemAvailable":
			f.MemAvailableBytes = &v
		case "SwapTotal":
			f.SwapTotalBytes = &v
		case "SwapFree":
			f.SwapFreeBytes = &v
		}
	}
}

// vmStat reads the counters of /proc/vmstat that are kept.
func vmStat(b []byte, f *evidence.KernelFrame) {
	pairs(b, func(name string, v uint64) {
		switch name {
		case "oom_kill":
			f.OOMKills = &v
		case "pswpin":
			f.SwapInPages = &v
		}
	})
}

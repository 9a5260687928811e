package kernel

import (
	"bytes"

	"github.com/whyhang/whyhang/probes/evidence"
)

// number reads a decimal number of a kernel file; false for anything else.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if v > (1<<64-1-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// pairs reads lines of "name value", as cpu.stat, memory.events,
// memory.oom_control, cgroup.events and vmstat have them, and gives see those
// with a number.
func pairs(b []byte, see func(name string, value uint64)) {
	for line := range bytes.Lines(b) {
		name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		if !ok || len(name) > 64 {
			continue
		}
		if v, ok := number(bytes.TrimSpace(value)); ok {
			see(string(name), v)
		}
	}
}

// cpuStat reads cpu.stat of either version: version 1 counts nanoseconds in
// throttled_time, version 2 microseconds in throttled_usec.
func cpuStat(b []byte, f *evidence.CgroupFrame) {
	pairs(b, func(name string, v uint64) {
		switch name {
		case "nr_periods":
			f.Periods = &v
		case "nr_throttled":
			f.Throttled = &v
		case "throttled_time":
			v /= 1000
			f.ThrottledUS = &v
		case "throttled_usec":
			f.ThrottledUS = &v
		}
	})
}

// cpuMax reads cpu.max of version 2: "max 100000" or "5000 100000", in
// microseconds.
func cpuMax(b []byte) (quota, period *uint64) {
	first, second, _ := bytes.Cut(bytes.TrimSpace(b), []byte(" "))
	if v, ok := number(second); ok {
		period = &v
	}
	if v, ok := number(first); ok {
		quota = &v
	}
	return quota, period
}

// single reads a file of one number; nil for "max", -1 and anything else that
// stands for "no limit".
func single(b []byte) *uint64 {
	if v, ok := number(bytes.TrimSpace(b)); ok {
		return &v
	}
	return nil
}

// noMemoryLimit is what version 1 shows for no limit, or more: the largest
// number of pages (PAGE_COUNTER_MAX), in bytes.
const noMemoryLimit = 1 << 62

// memoryLimit is a limit in bytes, nil for none.
func memoryLimit(b []byte) *uint64 {
	if v := single(b); v != nil && *v < noMemoryLimit {
		return v
	}
	return nil
}

// oomKills reads the counter of memory.events (version 2) or
// memory.oom_control (version 1, since Linux 4.13).
func oomKills(b []byte) *uint64 {
	var found *uint64
	pairs(b, func(name string, v uint64) {
		if name == "oom_kill" {
			found = &v
		}
	})
	return found
}

// freezerState reads freezer.state of version 1.
func freezerState(b []byte) evidence.Freezer {
	switch s := evidence.Freezer(bytes.TrimSpace(b)); s {
	case evidence.Thawed, evidence.Freezing, evidence.Frozen:
		return s
	}
	return ""
}

// freezerEvents joins cgroup.events and cgroup.freeze of version 2: the first
// says whether all threads have arrived, the second whether the group itself
// was told to freeze.
func freezerEvents(events, freeze []byte) (evidence.Freezer, *bool) {
	var frozen *uint64
	pairs(events, func(name string, v uint64) {
		if name == "frozen" {
			frozen = &v
		}
	})
	var told *bool
	if v := single(freeze); v != nil {
		is := *v != 0
		told = &is
	}
	switch {
	case frozen == nil:
		return "", told // the root of the hierarchy cannot be frozen
	case *frozen != 0:
		return evidence.Frozen, told
	case told != nil && *told:
		return evidence.Freezing, told
	}
	return evidence.Thawed, told
}

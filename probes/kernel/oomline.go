package kernel

import (
	"bytes"
	"errors"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// record is one record of /dev/kmsg
// (Documentation/ABI/testing/dev-kmsg):
//
//	3,1234,5678901,-;Memory cgroup out of memory: Killed process 42 (python3) …
type record struct {
	// kernel: it comes from the kernel (facility 0), which no program can claim.
	kernel   bool
	sequence uint64
	// atUS is the time since boot in microseconds, on the clock of the kernel's
	// log, which stands still while the machine sleeps.
	atUS uint64
	text string
}

var errRecord = errors.New("unreadable record of the kernel's log")

// maxKernelLine bounds what is kept of a line.
const maxKernelLine = 400

func parseRecord(b []byte) (record, error) {
	head, text, ok := bytes.Cut(b, []byte(";"))
	fields := bytes.SplitN(head, []byte(","), 5)
	if !ok || len(fields) < 3 {
		return record{}, errRecord
	}
	var n [3]uint64
	for i := range n {
		if n[i], ok = number(fields[i]); !ok {
			return record{}, errRecord
		}
	}
	// What follows the line are continuation lines with key=value pairs.
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return record{kernel: n[0]>>3 == 0, sequence: n[1], atUS: n[2], text: plain(text[:min(len(text), 4*maxKernelLine)])}, nil
}

// plain keeps printable ASCII: the kernel escapes the rest as \xNN, but a line
// of an older one may hold the raw name of a process.
func plain(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(b))
}

// killedMark is in every line about a killed process
// (__oom_kill_process, mm/oom_kill.c).
const killedMark = "Killed process "

// parseKill reads a line about a process killed for memory:
//
//	Memory cgroup out of memory: Killed process 42 (python3) total-vm:…kB, anon-rss:…kB, …
//	Out of memory: Killed process 42 (python3) total-vm:…
//
// The name may hold parentheses itself, so it ends at the last one before the
// numbers.
func parseKill(text string) (evidence.OOMKill, bool) {
	before, rest, ok := strings.Cut(text, killedMark)
	limit := strings.HasPrefix(before, "Memory cgroup out of memory")
	if !ok || !limit && !strings.HasPrefix(before, "Out of memory") {
		return evidence.OOMKill{}, false
	}
	digits, rest, ok := strings.Cut(rest, " (")
	pid, isNumber := number([]byte(digits))
	if !ok || !isNumber || pid == 0 || pid > 1<<22 {
		return evidence.OOMKill{}, false
	}
	name, numbers := rest, ""
	if i := strings.Index(rest, "total-vm:"); i >= 0 {
		name, numbers = rest[:i], rest[i:]
	}
	end := strings.LastIndexByte(name, ')')
	if end < 0 {
		return evidence.OOMKill{}, false
	}
	k := evidence.OOMKill{PID: int(pid), Name: name[:min(end, 64)], Limit: limit, Text: text[:min(len(text), maxKernelLine)]}
	if _, anon, ok := strings.Cut(numbers, "anon-rss:"); ok {
		kb, _, _ := strings.Cut(anon, "kB")
		if v, ok := number([]byte(kb)); ok && v < 1<<53 {
			v <<= 10
			k.AnonBytes = &v
		}
	}
	return k, true
}

// parseKillGroup reads the line that comes before, since Linux 5.0, for the
// memory group of the process (dump_oom_summary, mm/oom_kill.c):
//
//	oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/x,task_memcg=/x,task=python3,pid=42,uid=0
func parseKillGroup(text string) (pid int, group string, ok bool) {
	if !strings.HasPrefix(text, "oom-kill:") {
		return 0, "", false
	}
	// The name of the task is last but two and may hold commas.
	_, rest, ok := strings.Cut(text, ",task_memcg=")
	if !ok {
		return 0, "", false
	}
	group, _, ok = strings.Cut(rest, ",task=")
	i := strings.LastIndex(rest, ",pid=")
	if !ok || i < 0 {
		return 0, "", false
	}
	digits, _, _ := strings.Cut(rest[i+len(",pid="):], ",")
	n, isNumber := number([]byte(digits))
	if !isNumber || n > 1<<22 {
		return 0, "", false
	}
	return int(n), group[:min(len(group), 1024)], true
}

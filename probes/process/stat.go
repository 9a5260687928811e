package process

import (
	"bytes"
	"errors"
)

// stat is the part of /proc/PID/stat that whyhang uses; the fields are
// numbered as in proc_pid_stat(5).
type stat struct {
	PID   int
	Comm  string // 2, at most maxComm bytes
	State byte   // 3
	PPID  int    // 4
	// Flags are those of the kernel (PF_…, include/linux/sched.h).
	Flags uint64 // 9
	// Faults of the process (or thread) itself.
	MinorFaults, MajorFaults uint64 // 10, 12
	// CPU time in clock ticks; the child times are those of children that were
	// waited for.
	User, System, ChildUser, ChildSystem uint64 // 14-17
	Threads                              int    // 20
	// Start is in clock ticks since boot.
	Start uint64 // 22
	// CPU is the processor it last ran on.
	CPU int // 39
	// ExitCode is the wait status of a zombie, 0 when it may not be read.
	ExitCode int // 52
}

// kernelThread is PF_KTHREAD of the flags (include/linux/sched.h).
const kernelThread = 0x00200000

func (s *stat) isKernelThread() bool { return s.Flags&kernelThread != 0 }

// maxComm is more than TASK_COMM_LEN (16), as kernel threads show up to 64.
const maxComm = 64

var errStat = errors.New("unreadable stat line")

// parseStat reads the one line of /proc/PID/stat or task/TID/stat. The comm
// stands in parentheses and may hold parentheses, spaces and newlines itself,
// so it ends at the last one.
func parseStat(b []byte) (stat, error) {
	var s stat
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open || end+2 >= len(b) {
		return s, errStat
	}
	pid, ok := number(bytes.TrimSpace(b[:open]))
	if !ok {
		return s, errStat
	}
	s.PID = int(pid)
	s.Comm = string(b[open+1 : min(end, open+1+maxComm)])
	rest := b[end+2:]
	field := 3
	for len(rest) > 0 {
		var word []byte
		if i := bytes.IndexByte(rest, ' '); i >= 0 {
			word, rest = rest[:i], rest[i+1:]
		} else {
			word, rest = bytes.TrimRight(rest, "\n"), nil
		}
		if !s.set(field, word) {
			return s, errStat
		}
		field++
	}
	if field <= 22 {
		return s, errStat
	}
	return s, nil
}

// set takes field n of the line. Numbers that the kernel prints as signed and
// that went below zero count as 0.
func (s *stat) set(n int, word []byte) bool {
	if n == 3 {
		if len(word) != 1 {
			return false
		}
		s.State = word[0]
		return true
	}
	var to *uint64
	var toInt *int
	switch n {
	case 4:
		toInt = &s.PPID
	case 9:
		to = &s.Flags
	case 10:
		to = &s.MinorFaults
	case 12:
		to = &s.MajorFaults
	case 14:
		to = &s.User
	case 15:
		to = &s.System
	case 16:
		to = &s.ChildUser
	case 17:
		to = &s.ChildSystem
	case 20:
		toInt = &s.Threads
	case 22:
		to = &s.Start
	case 39:
		toInt = &s.CPU
	case 52:
		toInt = &s.ExitCode
	default:
		return true
	}
	v, ok := number(word)
	if !ok && (len(word) < 2 || word[0] != '-') {
		return false
	}
	if to != nil {
		*to = v
	} else {
		*toInt = int(v & 0x7fffffff)
	}
	return true
}

// number reads an unsigned decimal without allocating.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	return v, true
}

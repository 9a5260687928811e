package process

import (
	"bytes"
)

// call is a line of /proc/PID/task/TID/syscall of a thread that sleeps in a
// system call (proc_pid_syscall(5)): the number in decimal, six arguments, the
// stack pointer and the program counter in hexadecimal. All six registers are
// printed, whatever the call uses.
type call struct {
	Number uint64
	Args   [6]uint64
	SP, PC uint64
}

// parseCall reads a syscall line. False for "running", for "-1 SP PC" (asleep,
// but in no system call) and for anything else.
func parseCall(line []byte) (call, bool) {
	var c call
	line = bytes.TrimRight(line, "\n")
	for field := 0; ; field++ {
		word, rest, more := bytes.Cut(line, []byte(" "))
		var ok bool
		switch {
		case field == 0:
			c.Number, ok = number(word)
		case field <= 6:
			c.Args[field-1], ok = hexNumber(word)
		case field == 7:
			c.SP, ok = hexNumber(word)
		case field == 8:
			c.PC, ok = hexNumber(word)
		}
		switch {
		case !ok, !more && field < 8:
			return call{}, false
		case !more:
			return c, true
		}
		line = rest
	}
}

// isRunning tells the line of a thread that is on a CPU or waits for one. A
// thread that wakes up during the read shows the same.
func isRunning(line []byte) bool { return bytes.HasPrefix(line, []byte("running")) }

// schedstat is /proc/PID/task/TID/schedstat: nanoseconds on a CPU, nanoseconds
// waiting for one, number of times on one (Documentation/scheduler/
// sched-stats.rst).
type schedstat struct{ Run, Delay, Slices uint64 }

// parseSchedstat is false for anything but three numbers. A kernel without
// CONFIG_SCHED_INFO prints three zeros, which no thread that has run can have:
// they count as not known.
func parseSchedstat(b []byte) (schedstat, bool) {
	var v [3]uint64
	words := bytes.Fields(b)
	if len(words) != 3 {
		return schedstat{}, false
	}
	for i, w := range words {
		var ok bool
		if v[i], ok = number(w); !ok {
			return schedstat{}, false
		}
	}
	s := schedstat{Run: v[0], Delay: v[1], Slices: v[2]}
	return s, s != schedstat{}
}

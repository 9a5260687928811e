package evidence

// Status says how a probe ended.
type Status string

// The ways a probe can end. Anything but OK has a Detail; Denied and
// Unsupported have a Hint with the command that would get further.
const (
	OK          Status = "ok"
	Partial     Status = "partial"
	Denied      Status = "denied"
	Unsupported Status = "unsupported"
	Timeout     Status = "timeout"
	Failed      Status = "failed"
	Skipped     Status = "skipped"
)

// ProbeName is the stable name of a probe in reports (contract, design
// section 4).
type ProbeName string

// The probes.
const (
	ProbeProcess    ProbeName = "process"
	ProbeThreads    ProbeName = "threads"
	ProbeWaits      ProbeName = "waits"
	ProbePython     ProbeName = "python"
	ProbeGPU        ProbeName = "gpu"
	ProbeSockets    ProbeName = "sockets"
	ProbeLog        ProbeName = "log"
	ProbeKernel     ProbeName = "kernel"
	ProbeCgroup     ProbeName = "cgroup"
	ProbeCollective ProbeName = "collective"
	ProbeCounters   ProbeName = "counters"
	ProbeCheck      ProbeName = "check"
	ProbeBench      ProbeName = "bench"
	// ProbeFiles looks at the files of caches and downloads.
	ProbeFiles ProbeName = "files"
)

// ProbeRun is how one probe went: itself evidence.
type ProbeRun struct {
	Name   ProbeName `json:"name"`
	Status Status    `json:"status"`
	TookMS float64   `json:"took_ms"`
	// Detail says what was tried and what the kernel or library answered.
	Detail string `json:"detail,omitempty"`
	// Hint is what the operator can do about it: a command to paste.
	Hint string `json:"hint,omitempty"`
}

// Need is a kind of evidence a rule cannot judge without.
type Need string

// The needs. Which part of a snapshot satisfies each is decided in
// rules/rule.
const (
	NeedTree           Need = "process tree"
	NeedThreadStates   Need = "thread states"
	NeedThreadSyscalls Need = "thread system calls"
	NeedLockWords      Need = "lock words"
	NeedOpenFiles      Need = "mapped and open files"
	NeedMovement       Need = "two looks at the counters"
	NeedLog            Need = "server log"
	NeedSockets        Need = "sockets"
	NeedGPU            Need = "GPU state"
	NeedCheck          Need = "answer to the 2+2 check"
	NeedBench          Need = "benchmark"
	NeedCaches         Need = "cache directories"
	NeedLimits         Need = "limits of the machine"
	NeedClocks         Need = "clocks of the processors"
	NeedCounters       Need = "the engine's own counters"
)

// Unread is something of one process that could not be read, and why.
type Unread struct {
	// What is the file or fact, as in "/proc/4242/task/*/syscall".
	What   string `json:"what"`
	Status Status `json:"status"`
	// Why is what the kernel said.
	Why string `json:"why"`
	// Hint is the command that would read it.
	Hint string `json:"hint,omitempty"`
}

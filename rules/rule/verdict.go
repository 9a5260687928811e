package rule

import "fmt"

// Verdict is the one word of a report (contract, design section 3).
type Verdict string

// The verdicts.
const (
	Ready        Verdict = "ready"
	Loading      Verdict = "loading"
	Stalled      Verdict = "stalled"
	Deadlocked   Verdict = "deadlocked"
	Unresponsive Verdict = "unresponsive"
	Broken       Verdict = "broken"
	Gone         Verdict = "gone"
	Unknown      Verdict = "unknown"
)

// Verdicts are all verdicts with what they say, in the order of their exit
// codes.
var Verdicts = []struct {
	Verdict Verdict
	Exit    int
	Says    string
}{
	{Ready, 0, "answers correctly"},
	{Loading, 3, "moves towards ready"},
	{Stalled, 4, "does not move now; not proved that it cannot"},
	{Deadlocked, 5, "nothing inside can make it move again"},
	{Unresponsive, 6, "up, but does not answer, or answers wrongly"},
	{Broken, 7, "a part is dead or the machine failed"},
	{Gone, 8, "no such process, or it ended while we looked"},
	{Unknown, 9, "the evidence cannot decide"},
}

// The exit codes that belong to no verdict of their own.
const (
	ExitFailed    = 1  // whyhang itself failed
	ExitUsage     = 2  // wrong usage
	ExitDistorted = 10 // ready, but its numbers would mislead
)

// ExitCode is the exit code of a verdict with its cause.
func ExitCode(v Verdict, c Cause) int {
	if v == Ready && (c == Distorted || c == BelowBaseline) {
		return ExitDistorted
	}
	for _, w := range Verdicts {
		if w.Verdict == v {
			return w.Exit
		}
	}
	return ExitFailed
}

// Cause is the slug that says why (contract, design section 3).
type Cause string

// The causes, by verdict.
const (
	Idle          Cause = "idle"
	Busy          Cause = "busy"
	Slow          Cause = "slow"
	Distorted     Cause = "distorted"
	BelowBaseline Cause = "below-baseline"

	Starting        Cause = "starting"
	Download        Cause = "download"
	WeightsRead     Cause = "weights-read"
	WeightsConvert  Cause = "weights-convert"
	KernelBuild     Cause = "kernel-build"
	GraphCompile    Cause = "graph-compile"
	Autotune        Cause = "autotune"
	GraphCapture    Cause = "graph-capture"
	CommunicatorUp  Cause = "communicator-init"
	WarmUp          Cause = "warm-up"
	WaitingForPeer  Cause = "waiting-for-peer"
	Storage         Cause = "storage"
	DownloadStalled Cause = "download-stalled"
	Paused          Cause = "paused"
	Starved         Cause = "starved"
	GILHeld         Cause = "gil-held"
	NoMovement      Cause = "no-movement"

	LockCycle    Cause = "lock-cycle"
	OrphanedLock Cause = "orphaned-lock"
	ForkLock     Cause = "fork-lock"
	PipeCycle    Cause = "pipe-cycle"
	LostWakeup   Cause = "lost-wakeup"
	// StaleLockFile is a lock file whose maker is gone.
	StaleLockFile Cause = "stale-lock-file"
	MissingRank   Cause = "missing-rank"
	RankMismatch  Cause = "rank-mismatch"

	CommunicatorSpin Cause = "communicator-spin"

	NoAnswer    Cause = "no-answer"
	AcceptStuck Cause = "accept-stuck"
	EngineStuck Cause = "engine-stuck"

	GPUKernelStuck Cause = "gpu-kernel-stuck"
	WrongAnswer    Cause = "wrong-answer"
	GarbageAnswer  Cause = "garbage-answer"
	WrongOwner     Cause = "wrong-owner"

	DeadChild  Cause = "dead-child"
	FatalError Cause = "fatal-error"
	OOMKilled  Cause = "oom-killed"
	DiskFull   Cause = "disk-full"
	PortTaken  Cause = "port-taken"

	NoProcess Cause = "no-process"
	Exited    Cause = "exited"

	NoPermission Cause = "no-permission"
	Conflicting  Cause = "conflicting"
	TooShort     Cause = "too-short"
	NotAsked     Cause = "not-asked"
	NotAServer   Cause = "not-a-server"
)

// Strength says how sure a finding is.
type Strength int8

// The strengths, weakest first.
const (
	Open   Strength = iota // a possibility, nothing more
	Likely                 // fits, and little speaks against it
	Strong                 // two independent facts, nothing against
	Proved                 // could not be otherwise
)

var strengths = [...]string{"open", "likely", "strong", "proved"}

func (s Strength) String() string {
	if s < Open || s > Proved {
		return fmt.Sprintf("Strength(%d)", int8(s))
	}
	return strengths[s]
}

// MarshalText writes the word.
func (s Strength) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word.
func (s *Strength) UnmarshalText(b []byte) error {
	for i, w := range strengths {
		if w == string(b) {
			*s = Strength(i)
			return nil
		}
	}
	return fmt.Errorf("no strength %q", b)
}

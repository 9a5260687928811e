package evidence

import "time"

// SnapshotSchema is the schema written by this version.
const SnapshotSchema = "whyhang.snapshot/1"

// Snapshot is everything one run has seen. Rules see nothing else.
type Snapshot struct {
	Schema string    `json:"schema"`
	Tool   Tool      `json:"tool"`
	Taken  time.Time `json:"taken"`
	// TookMS is the wall time of the whole collection.
	TookMS float64 `json:"took_ms"`
	// Interrupted: whoever ran it stopped it (SIGINT, SIGTERM) before its end.
	Interrupted bool   `json:"interrupted,omitempty"`
	Asked       Asked  `json:"asked"`
	Host        Host   `json:"host"`
	Target      Target `json:"target"`
	// Processes is the tree, the server's root process first, then in the
	// order of discovery (breadth first). It holds what does not move.
	Processes []Process `json:"processes,omitempty"`
	// Frames are the looks at everything that moves, oldest first.
	Frames []Frame `json:"frames,omitempty"`
	// Waits are the readings of lock words, each between two looks at the
	// waiting threads, oldest first.
	Waits    []WaitLook    `json:"waits,omitempty"`
	Weights  *Weights      `json:"weights,omitempty"`
	Caches   []Cache       `json:"caches,omitempty"`
	Logs     []Log         `json:"logs,omitempty"`
	GPU      *GPU          `json:"gpu,omitempty"`
	Sockets  *Sockets      `json:"sockets,omitempty"`
	Kernel   *Kernel       `json:"kernel,omitempty"`
	Counters []CounterLook `json:"counters,omitempty"`
	Check    *Check        `json:"check,omitempty"`
	Bench    *Bench        `json:"bench,omitempty"`
	Waited   *Waited       `json:"waited,omitempty"`
	Probes   []ProbeRun    `json:"probes"`
}

// Tool names the whyhang that took the snapshot.
type Tool struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
}

// Asked is what the operator asked for, as far as it changes the judgement.
type Asked struct {
	PID int `json:"pid"`
	// WindowMS is the longest time the run was allowed to watch.
	WindowMS float64 `json:"window_ms"`
	Passive  bool    `json:"passive,omitempty"`
	NoCheck  bool    `json:"no_check,omitempty"`
	NoBench  bool    `json:"no_bench,omitempty"`
	Strict   bool    `json:"strict,omitempty"`
	// BaselineTokS is the single-stream decode rate to compare with.
	BaselineTokS *float64 `json:"baseline_tok_per_s,omitempty"`
	TolerancePct float64  `json:"tolerance_percent,omitempty"`
	Log          string   `json:"log,omitempty"`
	URL          string   `json:"url,omitempty"`
	Model        string   `json:"model,omitempty"`
	// ProcDir is the /proc that was read.
	ProcDir string `json:"proc_dir,omitempty"`
}

// Host is the machine whyhang ran on.
type Host struct {
	Kernel string `json:"kernel,omitempty"`
	Arch   string `json:"arch,omitempty"`
	CPUs   int    `json:"cpus,omitempty"`
	// UID is the user whyhang ran as; 0 is root.
	UID int `json:"uid"`
	// CapPtrace says whether whyhang held CAP_SYS_PTRACE.
	CapPtrace bool `json:"cap_sys_ptrace"`
	// YamaScope is /proc/sys/kernel/yama/ptrace_scope; nil where the kernel
	// has no Yama.
	YamaScope *int `json:"yama_ptrace_scope,omitempty"`
	// Zone is the offset of local time from UTC in seconds: log lines that
	// name no zone are read in it.
	ZoneOffsetS int `json:"zone_offset_s"`
}

// TargetState says what was found under the PID that was asked for.
type TargetState string

// The states a target can be found in.
const (
	TargetAlive  TargetState = "alive"
	TargetAbsent TargetState = "absent" // no such process
	TargetZombie TargetState = "zombie" // ended, not yet reaped by its parent
	TargetExited TargetState = "exited" // ended while whyhang looked
	TargetHidden TargetState = "hidden" // exists, but /proc does not show it (hidepid)
)

// Ancestor is a process above the target.
type Ancestor struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// Target is the process that was asked for.
type Target struct {
	// PID is the process (thread group) that is diagnosed.
	PID int `json:"pid"`
	// AskedPID is set when the number asked for was one of the server's workers:
	// PID is then the server's root process.
	AskedPID int `json:"asked_pid,omitempty"`
	// AskedTID is set when the number asked for was the ID of one of the
	// process's threads and not of the process.
	AskedTID int         `json:"asked_tid,omitempty"`
	State    TargetState `json:"state"`
	// WaitStatus is the wait status of a zombie as in wait(2): 256 is exit
	// code 1, 9 is killed by signal 9. From field 52 of /proc/PID/stat.
	WaitStatus *int `json:"wait_status,omitempty"`
	// Parent names who has to reap a zombie, or whose child a living part of an
	// engine is.
	ParentPID  int    `json:"parent_pid,omitempty"`
	ParentName string `json:"parent_name,omitempty"`
	// Ancestors are the parent, its parent and so on, without process 1.
	Ancestors []Ancestor `json:"ancestors,omitempty"`
	// Gone is when the process was first seen to be gone.
	Gone *time.Time `json:"gone,omitempty"`
}

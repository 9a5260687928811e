package evidence

import "time"

// Kind says what a known log line means for the reader.
type Kind string

// The kinds of known lines.
const (
	KindLaunch      Kind = "launch"      // a new server starts here: what stands above belongs to an earlier one
	KindBegin       Kind = "begin"       // a phase begins
	KindMark        Kind = "mark"        // a phase is under way
	KindProgress    Kind = "progress"    // a phase has come this far
	KindEnd         Kind = "end"         // a phase ends
	KindReady       Kind = "ready"       // the server says it is ready
	KindActivity    Kind = "activity"    // requests are being served
	KindHeartbeat   Kind = "heartbeat"   // the log grows, nothing else: never progress
	KindRetry       Kind = "retry"       // the same attempt again: never progress
	KindStall       Kind = "stall"       // the server says it is stuck
	KindFatal       Kind = "fatal"       // a part of the server fails: a cause
	KindConsequence Kind = "consequence" // follows from a cause above
	KindShutdown    Kind = "shutdown"    // the server stops on purpose
)

// Phase is the stable name of a part of a server's life (contract, design
// section 4).
type Phase string

// The phases, in their usual order. Engines may skip, repeat or swap them.
const (
	PhaseStarting     Phase = "starting"
	PhaseDownload     Phase = "download"
	PhaseCommunicator Phase = "communicator"
	PhaseWeights      Phase = "weights"
	PhaseConvert      Phase = "convert"
	PhaseKernelBuild  Phase = "kernel-build"
	PhaseGraphCompile Phase = "graph-compile"
	PhaseAutotune     Phase = "autotune"
	PhaseGraphCapture Phase = "graph-capture"
	PhaseWarmUp       Phase = "warm-up"
	PhaseReady        Phase = "ready"
	PhaseServing      Phase = "serving"
	PhaseStopping     Phase = "stopping"
)

// Signature is a known log line. Signatures are data: engines write them, the
// log probe finds them, users may add some with --signatures.
type Signature struct {
	// ID is unique, "engine.phase.what". Phase is empty, and "any" in the ID,
	// for lines that may come at any time: failures, heartbeats, retries.
	ID     string `json:"id"`
	Engine string `json:"engine"`
	Phase  Phase  `json:"phase"`
	Kind   Kind   `json:"kind"`
	// Literal is a string every such line contains, 4 bytes or more; the
	// longer and rarer it is, the faster the log is read. Pattern, if any, is
	// an RE2 expression the line must also match.
	Literal string `json:"literal"`
	Pattern string `json:"pattern,omitempty"`
	// Series, if any, is an RE2 expression that finds numbers in such a line, in
	// groups named running, waiting (requests), tokens_per_s, prompt_tokens_per_s
	// and kv_percent: they are kept as a series over the life of the log.
	Series string `json:"series,omitempty"`
	// Groups of Pattern named done, total, percent, seconds, bytes, rank,
	// version or port are kept with the hit.
	//
	// Examples must match and Near must not; the tests hold both against all
	// signatures.
	Examples []string `json:"examples,omitempty"`
	Near     []string `json:"near,omitempty"`
}

// Log is one log file, read from its first to its last byte.
type Log struct {
	// Path is where the file is now, by the target's view; Source how it was
	// found: "fd 2 of 4242", "--log".
	Path   string `json:"path"`
	Source string `json:"source"`
	// SizeBytes is how much was read; Lines the number of lines in it (a last
	// piece without newline counts).
	SizeBytes int64 `json:"size_bytes"`
	Lines     int64 `json:"lines"`
	// Modified is the file's modification time; SilentS the seconds from it to
	// the moment of reading.
	Modified time.Time `json:"modified"`
	SilentS  float64   `json:"silent_s"`
	// LaunchLine is the line of the last launch marker, 0 for none; Launches
	// how many there were. Marks above the last launch are not kept.
	LaunchLine int64 `json:"launch_line,omitempty"`
	Launches   int   `json:"launches,omitempty"`
	// First and Last are the first and the last time stamps since the launch.
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Marks are the known lines since the last launch, by first appearance.
	Marks []Mark `json:"marks,omitempty"`
	// Tail are the last lines, sanitised, redacted and cut to 400 bytes.
	Tail []Line `json:"tail,omitempty"`
	// Errors are lines that look like an error and that no signature knows.
	Errors []Line `json:"errors,omitempty"`
	// Unread are other logs that were seen but not read, and why.
	Unread []Unread `json:"unread,omitempty"`
}

// Line is one line of a log.
type Line struct {
	Number int64      `json:"line"`
	At     *time.Time `json:"at,omitempty"`
	// Rank is as the line names it, for errors only; of a traceback as its first
	// line does. "" for none.
	Rank string `json:"rank,omitempty"`
	Text string `json:"text"`
}

// Mark is one signature as seen in the log, by rank.
type Mark struct {
	Signature string `json:"signature"`
	Engine    string `json:"engine"`
	Phase     Phase  `json:"phase"`
	Kind      Kind   `json:"kind"`
	// Rank is as the log names it ("TP0", "Worker_TP3"); "" for none.
	Rank string `json:"rank,omitempty"`
	// Count is how many such lines there are; First and Last the outer ones.
	// Last is absent when Count is 1. Distinct counts how often the values
	// (done, percent) changed: progress, where Count alone is not.
	Count    int64 `json:"count"`
	Distinct int64 `json:"distinct,omitempty"`
	First    Hit   `json:"first"`
	Last     *Hit  `json:"last,omitempty"`
	// Series are the numbers in such lines, if the signature says what they are.
	Series *Series `json:"series,omitempty"`
}

// Series are numbers from lines of one mark: from the first line on every
// Every-th, and the last.
type Series struct {
	Every  int64   `json:"every"`
	Points []Point `json:"points"`
}

// Point is what one line says, by the name of the group (Signature.Series).
type Point struct {
	Line   int64              `json:"line"`
	At     *time.Time         `json:"at,omitempty"`
	Values map[string]float64 `json:"values"`
}

// Hit is one known line.
type Hit struct {
	Line   int64      `json:"line"`
	Offset int64      `json:"offset"`
	At     *time.Time `json:"at,omitempty"`
	Text   string     `json:"text"`
	// Values are the named groups of the signature's pattern.
	Values map[string]string `json:"values,omitempty"`
}

// LogFrame is how a log has moved since the run began.
type LogFrame struct {
	Path      string `json:"path"`
	SizeBytes int64  `json:"size_bytes"`
	// NewLines are complete lines since the last frame; NewContent those of
	// them that are not heartbeats, retries or repetitions of each other with
	// other numbers.
	NewLines   int64 `json:"new_lines"`
	NewContent int64 `json:"new_content"`
	// Activity counts new lines about requests being served.
	Activity int64 `json:"activity,omitempty"`
	// Bar is the last piece of a progress bar that has no newline yet.
	Bar string `json:"bar,omitempty"`
}

// LineFormat says how the lines of one engine name their rank and their time.
// It is data for the log probe.
type LineFormat struct {
	Engine string `json:"engine"`
	// Rank is an RE2 expression with a group named rank ("TP0"); empty: the
	// engine's lines name none.
	Rank string `json:"rank,omitempty"`
	// Time is an RE2 expression with a group named time, Layout the layout of
	// that group for time.Parse. A layout without a zone is read as local time
	// of the host unless UTC is set; one without a year gets the year in which
	// the line is not in the future.
	Time   string `json:"time,omitempty"`
	Layout string `json:"layout,omitempty"`
	UTC    bool   `json:"utc,omitempty"`
}

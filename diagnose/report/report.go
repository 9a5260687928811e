package report

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// Schema is the schema of the JSON report.
const Schema = "whyhang.report/1"

// Report is the JSON contract (design section 4). Names are stable; what is
// not known is absent.
type Report struct {
	Schema       string         `json:"schema"`
	Tool         evidence.Tool  `json:"tool"`
	Taken        time.Time      `json:"taken"`
	TookMS       float64        `json:"took_ms"`
	WindowMS     float64        `json:"window_ms"`
	Target       Target         `json:"target"`
	Verdict      rule.Verdict   `json:"verdict"`
	Cause        rule.Cause     `json:"cause"`
	Strength     rule.Strength  `json:"strength"`
	ExitCode     int            `json:"exit_code"`
	Sentence     string         `json:"sentence"`
	Phase        *Phase         `json:"phase,omitempty"`
	Timeline     []Span         `json:"timeline"`
	GPUs         []GPU          `json:"gpus"`
	Findings     []Finding      `json:"findings"`
	RuledOut     []RuledOut     `json:"ruled_out"`
	NotEvaluated []NotEvaluated `json:"not_evaluated"`
	FlipsIf      []string       `json:"flips_if"`
	Warnings     []rule.Warning `json:"warnings"`
	Next         []rule.Step    `json:"next"`
	// Movement is what moved before whyhang asked anything.
	Movement []Move `json:"movement,omitempty"`
	// Threads are the threads of the tree in groups that do the same.
	Threads  []ThreadGroup          `json:"thread_groups,omitempty"`
	Logs     []LogRead              `json:"logs,omitempty"`
	Counters []evidence.CounterLook `json:"counters,omitempty"`
	Check    *Check                 `json:"check,omitempty"`
	Bench    *evidence.Bench        `json:"bench,omitempty"`
	Waited   *Waited                `json:"waited,omitempty"`
	Probes   []evidence.ProbeRun    `json:"probes"`
}

// Check is the 2+2 check: the evidence, and the exchange that decided in the
// short names of the benchmark report.
type Check struct {
	*evidence.Check
	Answer           string  `json:"answer"`
	FinishReason     string  `json:"finish_reason,omitempty"`
	Content          string  `json:"content"`
	ReasoningChars   int     `json:"reasoning_chars"`
	CompletionTokens int     `json:"completion_tokens"`
	TTFTMS           float64 `json:"ttft_ms,omitempty"`
	E2ELMS           float64 `json:"e2el_ms,omitempty"`
	HTTPStatus       int     `json:"http_status"`
	ErrorType        string  `json:"error_type"`
}

// Target is the server.
type Target struct {
	PID           int      `json:"pid"`
	AskedTID      int      `json:"asked_tid,omitempty"`
	Engine        string   `json:"engine,omitempty"`
	EngineVersion string   `json:"engine_version,omitempty"`
	Model         string   `json:"model,omitempty"`
	ModelBytes    uint64   `json:"model_bytes,omitempty"`
	Argv          []string `json:"argv,omitempty"`
	Processes     int      `json:"processes"`
	Threads       int      `json:"threads"`
	UptimeS       *float64 `json:"uptime_s,omitempty"`
	RanksExpected int      `json:"ranks_expected,omitempty"`
	RanksSeen     int      `json:"ranks_seen,omitempty"`
	Container     string   `json:"container,omitempty"`
	URL           string   `json:"url,omitempty"`
}

// Phase is the phase of a loading server.
type Phase struct {
	Name     evidence.Phase `json:"name"`
	Since    *time.Time     `json:"since,omitempty"`
	ElapsedS *float64       `json:"elapsed_s,omitempty"`
	Done     *float64       `json:"done,omitempty"`
	Total    *float64       `json:"total,omitempty"`
	Unit     string         `json:"unit,omitempty"`
	Percent  *float64       `json:"percent,omitempty"`
	RatePerS *float64       `json:"rate_per_s,omitempty"`
	ETAS     *float64       `json:"eta_s,omitempty"`
	ETALowS  *float64       `json:"eta_low_s,omitempty"`
	ETAHighS *float64       `json:"eta_high_s,omitempty"`
	// SilenceS is how long the log may be silent in this phase.
	SilenceS float64 `json:"legal_silence_s,omitempty"`
}

// Span is a phase of one rank.
type Span struct {
	Phase   evidence.Phase `json:"phase"`
	Begin   *time.Time     `json:"begin,omitempty"`
	End     *time.Time     `json:"end,omitempty"`
	Seconds *float64       `json:"seconds,omitempty"`
	Rank    string         `json:"rank,omitempty"`
	Line    int64          `json:"line"`
	EndLine int64          `json:"end_line,omitempty"`
}

// GPU is one GPU in the last look.
type GPU struct {
	Index             int      `json:"index"`
	UUID              string   `json:"uuid,omitempty"`
	Name              string   `json:"name,omitempty"`
	BusID             string   `json:"bus_id,omitempty"`
	MemoryUsedBytes   *uint64  `json:"memory_used_bytes,omitempty"`
	MemoryTotalBytes  *uint64  `json:"memory_total_bytes,omitempty"`
	UtilPercent       *int     `json:"util_percent,omitempty"`
	MemoryUtilPercent *int     `json:"memory_util_percent,omitempty"`
	PowerW            *float64 `json:"power_w,omitempty"`
	PowerLimitW       *float64 `json:"power_limit_w,omitempty"`
	PIDs              []int    `json:"pids"`
	Lost              bool     `json:"lost,omitempty"`
}

// Finding is a rule that fired.
type Finding struct {
	Rule     rule.ID        `json:"rule"`
	Verdict  rule.Verdict   `json:"verdict,omitempty"`
	Cause    rule.Cause     `json:"cause,omitempty"`
	Strength rule.Strength  `json:"strength"`
	Says     string         `json:"says"`
	Culprits []rule.Culprit `json:"culprits"`
	Victims  int            `json:"victims,omitempty"`
	Cites    []rule.Cite    `json:"cites"`
}

// RuledOut is a verdict that was not given.
type RuledOut struct {
	Verdict rule.Verdict `json:"verdict"`
	Rule    rule.ID      `json:"rule,omitempty"`
	Because string       `json:"because"`
	Cites   []rule.Cite  `json:"cites"`
}

// NotEvaluated is a rule that lacked evidence.
type NotEvaluated struct {
	Rule    rule.ID `json:"rule"`
	Missing string  `json:"missing"`
	Hint    string  `json:"hint"`
}

// ThreadGroup is a number of threads that do the same.
type ThreadGroup struct {
	Count int      `json:"count"`
	Does  string   `json:"does"`
	Wchan string   `json:"wchan,omitempty"`
	State string   `json:"state"`
	Still *int     `json:"did_not_run,omitempty"`
	Names []string `json:"names,omitempty"`
	PIDs  []int    `json:"pids,omitempty"`
}

// DecisiveLine is a line of a log that a reader should see.
type DecisiveLine struct {
	Line     int64         `json:"line"`
	LastLine int64         `json:"last_line,omitempty"`
	Count    int64         `json:"count"`
	Kind     evidence.Kind `json:"kind"`
	// Known: whyhang knows such lines; others only look like an error.
	Known bool   `json:"known"`
	Rank  string `json:"rank,omitempty"`
	Text  string `json:"text"`
	// HarmlessBy is the line that shows that the server got over it.
	HarmlessBy int64 `json:"harmless_by,omitempty"`
}

// Served is one number of the server's statistics, as its log gave it: name is
// tokens_per_s, prompt_tokens_per_s, running, waiting (requests) or kv_percent.
// Min, median and max are of the points that are not zero.
type Served struct {
	Name   string        `json:"name"`
	Rank   string        `json:"rank,omitempty"`
	Min    float64       `json:"min"`
	Median float64       `json:"median"`
	Max    float64       `json:"max"`
	Points []ServedPoint `json:"points"`
}

// ServedPoint is the number in one line.
type ServedPoint struct {
	Line  int64      `json:"line"`
	At    *time.Time `json:"at,omitempty"`
	Value float64    `json:"value"`
}

// LogRead is a log that was read.
type LogRead struct {
	Path      string  `json:"path"`
	Source    string  `json:"source"`
	Lines     int64   `json:"lines"`
	SizeBytes int64   `json:"size_bytes"`
	SilentS   float64 `json:"silent_s"`
	ReadyLine int64   `json:"ready_line,omitempty"`
	// SilenceS is how long this log may be silent in the phase that it shows.
	SilenceS float64 `json:"legal_silence_s,omitempty"`
	// Decisive are the lines that tell what became of the server, in order.
	Decisive []DecisiveLine `json:"decisive,omitempty"`
	// Serving are the numbers the server gives while it serves.
	Serving []Served `json:"serving,omitempty"`
	// Tail are the last lines.
	Tail   []evidence.Line   `json:"tail,omitempty"`
	Errors []evidence.Line   `json:"errors,omitempty"`
	Unread []evidence.Unread `json:"unread,omitempty"`
}

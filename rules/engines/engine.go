package engines

import (
	"regexp"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Engine is all that whyhang knows of one inference engine.
type Engine struct {
	// ID is the name in reports ("sglang"), Name the one the engine uses for
	// itself ("SGLang").
	ID   string
	Name string
	// Role tells which part of the engine a process is; false if it is no
	// process of this engine, as far as argv, title and libraries show.
	Role func(p *evidence.Process) (Role, bool)
	// Signatures are the engine's known log lines, Format how its lines begin.
	Signatures []evidence.Signature
	Formats    []evidence.LineFormat
	// Flags are the names of the options whyhang reads from the command line.
	Flags Flags
	// Heads are the processes that must live for the server to serve, derived
	// from the command line; nil when the number cannot be known from it.
	Heads func(c CommandLine) []Head
	// LogPart tells which part of the server wrote a log line, and its PID in its
	// own namespace; nil where lines do not name it.
	LogPart func(line string) (LogPart, bool)
	// Meets is where ranks look for each other: options that name an address
	// ("HOST:PORT", "tcp://HOST:PORT" or a host alone) and those that name the
	// port of such a host.
	Meets Meeting
	// Distortions are flags and variables that make a benchmark mislead.
	Distortions []Distortion
	// Env are the environment variables worth reading, beyond those of
	// Distortions. A trailing * stands for any ending.
	Env []string
	// Silence is how long the log may be silent in a phase of a healthy start.
	Silence map[evidence.Phase]time.Duration
	// After is the phase that a server is in once all ranks have ended another
	// one and none has named the next.
	After map[evidence.Phase]evidence.Phase
	// SpinsIdle: some of its processes compute while nothing is asked of them, so
	// that processor time is no sign of work. Loops of sched_yield, which spend
	// their time in the kernel, are not meant.
	SpinsIdle bool
	// ListensEarly: the port is open before the model is loaded.
	ListensEarly bool
}

// Role is the part a process plays in an engine.
type Role struct {
	// Name is "api-server", "scheduler", "worker", "engine-core",
	// "detokenizer", "data-parallel-controller", "router" or "helper".
	Name string
	// Rank is the rank as the engine writes it ("TP0"), "" for none.
	Rank string
	// Head: the server cannot serve without this process.
	Head bool
}

// Head is a process the engine is expected to have.
type Head struct {
	Role  string
	Count int
	// Because names the flags that the number comes from.
	Because string
}

// Flags are the spellings of the options that whyhang reads. The first that is
// present wins.
type Flags struct {
	Model, ServedName, Host, Port, APIKey []string
	// Socket names a unix socket that takes requests instead of a port.
	Socket []string
	// APIKeyList: commas separate several keys.
	APIKeyList bool
	// DefaultPort is the port without the flag.
	DefaultPort int
	DefaultHost string
	// ModelIsPositional: the first word after one of these subcommands is the
	// model ("serve").
	ModelIsPositional []string
	// Env maps an option's first spelling to a variable that sets it as well.
	Env map[string]string
}

// Distortion is something on the command line or in the environment that makes
// benchmark numbers mislead.
type Distortion struct {
	// Flag is an option, with its value when only that value distorts
	// ("--log-level debug"); Env a variable, likewise ("NCCL_DEBUG=INFO").
	// Exactly one of the two is set. A value may list alternatives with |; <8 is
	// any number below 8, and >cpus any above the number of processors.
	Flag string
	Env  string
	// Says is what it does; Effect how much it costs, where known.
	Says   string
	Effect string
	// StartOnly: it slows down the start; numbers of a server that is up are not
	// touched.
	StartOnly bool
	// Like must match the value, where a word is not enough.
	Like *regexp.Regexp
}

// LogPart is a part of the server as its log lines name it.
type LogPart struct {
	// Role and Rank are as in Role.
	Role, Rank string
	// NSPID is the process in its own PID namespace.
	NSPID int
}

// Meeting are the options by which ranks are told where to meet.
type Meeting struct {
	Address, Port []string
}

package rule

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
)

// ID names a rule for ever: reports, tests and scripts refer to it.
type ID string

// Rule is one thing that can be true of a server.
type Rule struct {
	ID ID
	// Verdict is the verdict its findings speak for; empty for a rule that
	// only warns.
	Verdict Verdict
	// Title is one line; Doc says what the rule looks for, why that carries
	// the verdict, what would make it wrong, and where the facts come from.
	Title string
	Doc   string
	// Needs is the evidence without which the rule cannot judge: it is then
	// "not evaluated", which is never a sign of health.
	Needs []evidence.Need
	// Suppresses are rules whose findings are consequences of this one's.
	Suppresses []ID
	// Eval gives the findings: none if the rule does not fire.
	Eval func(*Case) []Finding
	// Against says why the rule did not fire, for the "ruled out" section; nil
	// if there is nothing worth saying.
	Against func(*Case) *Because
}

// Case is what a rule may see.
type Case struct {
	*evidence.Snapshot
	*facts.Facts
}

// NewCase computes the facts of a snapshot, once.
func NewCase(s *evidence.Snapshot) *Case {
	return &Case{Snapshot: s, Facts: facts.Of(s)}
}

// Finding is a rule that fired.
type Finding struct {
	Rule     ID
	Verdict  Verdict
	Cause    Cause
	Strength Strength
	// Says is one sentence that a manager understands.
	Says string
	// Culprits are the threads or processes at fault. Victims, who only wait
	// for them, are counted.
	Culprits []Culprit
	Victims  int
	// Cites are the facts the finding rests on, the strongest first.
	Cites []Cite
	// Phase is the phase a loading server is in.
	Phase *facts.Phase
	// FlipsIf are observations that would change the verdict.
	FlipsIf []string
	Next    []Step
	// Warning is set by rules that only warn.
	Warning *Warning
}

// Culprit is a thread or process at fault.
type Culprit struct {
	PID  int    `json:"pid"`
	TID  int    `json:"tid,omitempty"`
	Name string `json:"name"`
	// Where says what it does or waits for.
	Where string `json:"where"`
}

// Because says why a verdict was not given.
type Because struct {
	Says  string
	Cites []Cite
}

// Risk says what a step can do to the server.
type Risk string

// The risks of a step.
const (
	RiskNone Risk = "none"
	RiskLow  Risk = "low"
	RiskHigh Risk = "high"
)

// Step is something the operator can do next.
type Step struct {
	Do      string `json:"do"`
	Risk    Risk   `json:"risk"`
	Command string `json:"command,omitempty"`
}

// Warning is something that does not change the verdict and must be known.
type Warning struct {
	Code string `json:"code"`
	Says string `json:"says"`
	// Detail is the flag, variable or value; Effect what it costs.
	Detail string `json:"detail,omitempty"`
	Effect string `json:"effect,omitempty"`
	// Misleads: numbers of a benchmark would mislead; with --strict the exit code
	// says so.
	Misleads bool `json:"misleads,omitempty"`
}

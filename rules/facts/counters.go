package facts

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// frozenS is how long the steps must stand still while requests run, in seconds:
// between two steps of a healthy engine are milliseconds, and a prefill of a long
// prompt takes seconds. SGLang brings its counters up to date every 40 steps of
// decoding (--decode-log-interval), which on a CPU can be 20 s.
func frozenS(engine string) float64 {
	if engine == "sglang" {
		return 30
	}
	return 5
}

// Counters are what the engine says of itself. Counters that stand still never
// prove health: a dead engine's say "nothing runs".
type Counters struct {
	// Before is the last reading before the server was asked, -1 if there is none.
	Before int
	// FrozenFrom and FrozenTo are the first and the last of the readings at the end
	// in which requests ran and the engine made no step; -1 where they span less
	// than frozenS seconds.
	FrozenFrom, FrozenTo int
	// MovedFrom and MovedTo are two readings between which tokens were made that
	// whyhang did not ask for; -1 if there are none.
	MovedFrom, MovedTo int
	// Moved is how many tokens that were, in Seconds.
	Moved, Seconds float64
}

func countersOf(s *evidence.Snapshot) Counters {
	c := Counters{Before: -1, FrozenFrom: -1, FrozenTo: -1, MovedFrom: -1, MovedTo: -1}
	for i := range s.Counters {
		if s.Counters[i].During == "" {
			c.Before = i
		}
	}
	c.frozen(s)
	c.moved(s)
	return c
}

// frozen goes back from the last reading as long as requests run and the tokens
// are the same.
func (c *Counters) frozen(s *evidence.Snapshot) {
	last := len(s.Counters) - 1
	from := last
	for from > 0 && stands(&s.Counters[from-1], &s.Counters[last]) {
		from--
	}
	if from < last && stands(&s.Counters[from], &s.Counters[last]) && s.Counters[last].SinceMS-s.Counters[from].SinceMS >= 1000*frozenS(s.Counters[last].Engine) {
		c.FrozenFrom, c.FrozenTo = from, last
	}
}

func stands(a, b *evidence.CounterLook) bool {
	return runs(a) && runs(b) && a.Endpoint == b.Endpoint && same(a.Steps, b.Steps) && equal(a.GeneratedTokens, b.GeneratedTokens) &&
		equal(a.PromptTokens, b.PromptTokens) && equal(a.CacheUsage, b.CacheUsage)
}

func runs(l *evidence.CounterLook) bool { return l.Running != nil && *l.Running > 0 }

// same: both are known and the same; equal: the same, or both not known.
func same(a, b *float64) bool  { return a != nil && b != nil && *a == *b }
func equal(a, b *float64) bool { return a == nil && b == nil || same(a, b) }

// moved compares the first and the last reading. The answers to whyhang's own
// questions are taken off, twice: engines count tokens that they do not send.
func (c *Counters) moved(s *evidence.Snapshot) {
	last := len(s.Counters) - 1
	if last < 1 {
		return
	}
	a, b := &s.Counters[0], &s.Counters[last]
	if a.GeneratedTokens == nil || b.GeneratedTokens == nil || a.PerRequest || a.Endpoint != b.Endpoint {
		return
	}
	own := 0.0
	if s.Check != nil {
		for _, e := range s.Check.Exchanges {
			if e.HTTPStatus < 400 { // what was refused made none
				own += float64(2 * max(e.CompletionTokens, e.Chunks, e.MaxTokens))
			}
		}
	}
	if by := *b.GeneratedTokens - *a.GeneratedTokens; by > own {
		c.MovedFrom, c.MovedTo, c.Moved, c.Seconds = 0, last, by-own, (b.SinceMS-a.SinceMS)/1000
	}
}

// Others is how many requests of others there were, and in which reading: those
// before whyhang asked, or those after its answer but for one, as its own may still
// be counted. SGLang's numbers are behind by some steps: a 0 before says little.
// 0 and -1 also where nothing is known of it.
func (c *Counters) Others(s *evidence.Snapshot) (n float64, at int) {
	if c.Before < 0 {
		return 0, -1
	}
	if n = underWay(&s.Counters[c.Before]); n > 0 {
		return n, c.Before
	}
	if last := len(s.Counters) - 1; last > c.Before && answered(s) {
		if n = underWay(&s.Counters[last]) - 1; n > 0 {
			return n, last
		}
	}
	return 0, -1
}

// Idle: nothing ran in any reading, and nobody else's token was made.
func (c *Counters) Idle(s *evidence.Snapshot) bool {
	for i := range s.Counters {
		if s.Counters[i].Running == nil || underWay(&s.Counters[i]) > 0 {
			return false
		}
	}
	return len(s.Counters) > 1 && c.MovedFrom < 0
}

func underWay(l *evidence.CounterLook) (n float64) {
	for _, v := range []*float64{l.Running, l.Waiting} {
		if v != nil {
			n += *v
		}
	}
	return n
}

func answered(s *evidence.Snapshot) bool {
	return s.Check != nil && (s.Check.Verdict == evidence.CheckPass || s.Check.Verdict == evidence.CheckPassTruncated)
}

// CounterSays is one reading in words: "2 requests run, 5 wait".
func CounterSays(l *evidence.CounterLook) string {
	var parts []string
	if l.Running != nil {
		parts = append(parts, Requests(*l.Running))
	}
	if l.Waiting != nil {
		parts = append(parts, count(*l.Waiting, "waits", "wait"))
	}
	if l.GeneratedTokens != nil && !l.PerRequest {
		parts = append(parts, fmt.Sprintf("%.0f tokens generated so far", *l.GeneratedTokens))
	}
	if l.CacheUsage != nil {
		parts = append(parts, fmt.Sprintf("KV cache %.0f %% full", 100**l.CacheUsage))
	}
	if len(parts) == 0 {
		return "no counter that is known"
	}
	return strings.Join(parts, ", ")
}

// CounterField is the field that CounterSays begins with.
func CounterField(l *evidence.CounterLook) string {
	switch {
	case l.Running != nil:
		return "running"
	case l.Waiting != nil:
		return "waiting"
	case l.GeneratedTokens != nil:
		return "generated_tokens"
	}
	return "endpoint"
}

// Requests is how many requests run, in words.
func Requests(n float64) string { return count(n, "request runs", "requests run") }

func count(n float64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%.0f %s", n, many)
}

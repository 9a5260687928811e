package facts

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// frozenS is how long tokens must stand still while requests run, in seconds. An
// engine under load makes some in every step; between two steps of a healthy one
// are milliseconds, and a prefill of a long prompt takes seconds.
const frozenS = 5

// Counters are what the engine says of itself. Counters that stand still never
// prove health: a dead engine's say "nothing runs".
type Counters struct {
	// Before is the last reading before the server was asked, -1 if there is none.
	Before int
	// FrozenFrom and FrozenTo are the first and the last of the readings at the end
	// in which requests ran and no token moved; -1 where they span less than
	// frozenS seconds.
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
	if from < last && stands(&s.Counters[from], &s.Counters[last]) && s.Counters[last].SinceMS-s.Counters[from].SinceMS >= frozenS*1000 {
		c.FrozenFrom, c.FrozenTo = from, last
	}
}

func stands(a, b *evidence.CounterLook) bool {
	return runs(a) && runs(b) && same(a.GeneratedTokens, b.GeneratedTokens) && (a.PromptTokens == nil || same(a.PromptTokens, b.PromptTokens))
}

func runs(l *evidence.CounterLook) bool { return l.Running != nil && *l.Running > 0 }

func same(a, b *float64) bool { return a != nil && b != nil && *a == *b }

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
			own += float64(2 * max(e.CompletionTokens, e.Chunks, e.MaxTokens))
		}
	}
	if by := *b.GeneratedTokens - *a.GeneratedTokens; by > own {
		c.MovedFrom, c.MovedTo, c.Moved, c.Seconds = 0, last, by-own, (b.SinceMS-a.SinceMS)/1000
	}
}

// Others is how many requests ran or waited before whyhang asked; 0 also where
// nothing is known of it.
func (c *Counters) Others(s *evidence.Snapshot) float64 {
	if c.Before < 0 {
		return 0
	}
	n := 0.0
	for _, v := range []*float64{s.Counters[c.Before].Running, s.Counters[c.Before].Waiting} {
		if v != nil {
			n += *v
		}
	}
	return n
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

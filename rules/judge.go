package rules

import (
	"cmp"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/rule"
)

// Judgement is the verdict on a snapshot, with everything it rests on.
type Judgement struct {
	Verdict  rule.Verdict
	Cause    rule.Cause
	Strength rule.Strength
	ExitCode int
	// Sentence is one sentence a manager understands.
	Sentence string
	// Carried is the finding that carried the verdict; nil where no rule did
	// (gone, unknown).
	Carried *rule.Finding
	// Findings are all that count, the carrying one first; Suppressed are
	// consequences of others and are not shown.
	Findings     []rule.Finding
	Suppressed   []rule.Finding
	RuledOut     []RuledOut
	NotEvaluated []NotEvaluated
	FlipsIf      []string
	Warnings     []rule.Warning
	Next         []rule.Step
	// Settled: looking longer would not change the verdict.
	Settled bool
	// Case is what was judged.
	Case *rule.Case
}

// RuledOut says why a verdict was not given.
type RuledOut struct {
	Verdict rule.Verdict
	Rule    rule.ID
	Because string
	Cites   []rule.Cite
}

// NotEvaluated is a rule that lacked evidence. It says nothing about health.
type NotEvaluated struct {
	Rule    rule.ID
	Missing string
	Hint    string
	Status  evidence.Status
}

// Judge gives the verdict on a snapshot. It depends on nothing else.
func Judge(s *evidence.Snapshot) *Judgement {
	c := rule.NewCase(s)
	j := &Judgement{Case: c}
	if gone(c, j) {
		return finish(j)
	}
	found := evaluate(c, j)
	found = j.suppress(found)
	// Precedence: the first step that a finding stands on decides.
	slices.SortStableFunc(found, func(a, b rule.Finding) int {
		return cmp.Or(cmp.Compare(step(a), step(b)), cmp.Compare(b.Strength, a.Strength))
	})
	j.Findings = found
	for i := range found {
		if found[i].Warning == nil && step(found[i]) < stepUnknown {
			j.carry(&j.Findings[i])
			break
		}
	}
	if j.Carried == nil {
		undecided(c, j)
	}
	j.warn()
	distort(c, j)
	ruleOut(c, j)
	return finish(j)
}

// evaluate runs every rule whose needs are met.
func evaluate(c *rule.Case, j *Judgement) []rule.Finding {
	var found []rule.Finding
	for _, r := range All() {
		if unmet := c.Unmet(r.Needs); len(unmet) > 0 {
			for _, u := range unmet {
				j.NotEvaluated = append(j.NotEvaluated, NotEvaluated{r.ID, u.Missing, u.Hint, u.Status})
			}
			// A rule that found something in a part of the evidence found it
			// all the same; only its silence means nothing.
			if !hasAny(c, r.Needs) {
				continue
			}
		}
		for _, f := range r.Eval(c) {
			f.Rule, f.Verdict = r.ID, r.Verdict
			found = append(found, f)
		}
	}
	return found
}

// hasAny tells whether the parts of the snapshot that a rule reads exist at
// all, be they incomplete.
func hasAny(c *rule.Case, needs []evidence.Need) bool {
	for _, n := range needs {
		ok := true
		switch n {
		case evidence.NeedTree:
			ok = len(c.Processes) > 0
		case evidence.NeedLockWords:
			ok = len(c.Waits) > 0
		case evidence.NeedMovement:
			ok = c.Moves.Looked
		case evidence.NeedLog:
			ok = len(c.Logs) > 0
		case evidence.NeedOpenFiles:
			// What one process holds says something whatever the others hide.
		case evidence.NeedSockets:
			// "Does not listen" must be known, not assumed.
			ok = c.Sockets != nil && c.Door.NotKnown == ""
		case evidence.NeedCheck:
			ok = c.Check != nil
		case evidence.NeedLimits:
			ok = c.Kernel != nil
		case evidence.NeedBench:
			ok = c.Bench != nil
		case evidence.NeedGPU:
			ok = c.GPU != nil
		}
		if !ok {
			return false
		}
	}
	return true
}

// suppress drops the findings that are consequences of others.
func (j *Judgement) suppress(found []rule.Finding) []rule.Finding {
	silenced := map[rule.ID]bool{}
	for _, f := range found {
		switch f.Verdict {
		case rule.Deadlocked, rule.Stalled:
			if f.Strength < rule.Strong {
				continue // what is only likely explains nothing away
			}
		}
		for _, id := range ByID(f.Rule).Suppresses {
			silenced[id] = true
		}
	}
	kept := found[:0:0]
	for _, f := range found {
		if silenced[f.Rule] {
			j.Suppressed = append(j.Suppressed, f)
		} else {
			kept = append(kept, f)
		}
	}
	return kept
}

// The steps of precedence (design section 3).
const (
	stepBroken = 2 + iota
	stepAnswers
	stepProof
	stepProgress
	stepPaused
	stepNoAnswer
	stepStrongDeadlock
	stepNoMovement
	stepUnknown
)

// step is where a finding stands. "Gone" is step 1 and decided before.
func step(f rule.Finding) int {
	switch f.Verdict {
	case rule.Broken:
		// A log line or an unknown zombie alone ranks below progress.
		if f.Strength >= rule.Strong {
			return stepBroken
		}
		return stepNoAnswer
	case rule.Ready:
		switch {
		case f.Rule == "answers" && f.Strength == rule.Proved:
			return stepAnswers
		case f.Rule == "answers":
			return stepNoAnswer // at a place that is not known to be the server's own
		}
		// A word of its own is no answer: whatever speaks against it wins.
		return stepNoMovement
	case rule.Deadlocked:
		switch {
		case f.Strength == rule.Proved:
			return stepProof
		case f.Strength == rule.Strong:
			return stepStrongDeadlock
		}
		return stepUnknown
	case rule.Loading:
		if f.Strength == rule.Open {
			return stepUnknown // it may as well spin for ever
		}
		return stepProgress
	case rule.Stalled:
		if f.Cause == rule.NoMovement || f.Strength < rule.Strong {
			return stepNoMovement
		}
		return stepPaused
	case rule.Unresponsive:
		if f.Strength == rule.Open {
			return stepUnknown // it may as well be busy
		}
		return stepNoAnswer
	}
	return stepUnknown
}

func (j *Judgement) carry(f *rule.Finding) {
	j.Carried = f
	j.Verdict, j.Cause, j.Strength = f.Verdict, f.Cause, f.Strength
	j.Sentence, j.FlipsIf, j.Next = f.Says, f.FlipsIf, f.Next
}

// finish fills what follows from the rest.
func finish(j *Judgement) *Judgement {
	j.ExitCode = rule.ExitCode(j.Verdict, j.Cause)
	j.Settled = settled(j)
	return j
}

// settled tells whether a longer look could change anything. It is what keeps
// a run short: see diagnose/watch.go.
func settled(j *Judgement) bool {
	moves := &j.Case.Moves
	switch j.Verdict {
	case rule.Gone:
		return true
	case rule.Broken:
		return j.Strength >= rule.Strong && moves.WindowMS >= 500
	case rule.Deadlocked:
		return j.Strength == rule.Proved
	case rule.Ready:
		// Its own word gets no better with time.
		forbidden := j.Case.Asked.Passive || j.Case.Asked.NoCheck
		return j.Case.Check != nil || forbidden && moves.WindowMS >= 1500
	case rule.Loading:
		w := &j.Case.WeightsDone
		if j.Cause == rule.WeightsRead && w.Moving() && !w.Sure() {
			return false // the time left would be a guess
		}
		return j.Strength >= rule.Strong && moves.WindowMS >= 2000
	case rule.Stalled:
		return j.Cause == rule.Paused && moves.WindowMS >= 1000
	}
	return false
}

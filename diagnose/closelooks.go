package diagnose

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// The pauses between close looks at a picture that stays the same. A close look
// may put a question to the server, and costs a second of processor time.
const (
	closeFirst   = 10 * time.Second
	quietFirst   = 5 * time.Second
	closeLongest = 10 * time.Minute
)

// closeShare is the share of a processor that close looks may use; a variable
// as screenShare is.
var closeShare = 0.001

// closeLooks say when a close look is due: at once when the picture changes,
// and then ever more seldom.
type closeLooks struct {
	picture picture
	at      time.Time
	pause   time.Duration
	// times is how often in a row the close looks gave the same verdict.
	times int
	// seen: this quiet has been looked at.
	seen    bool
	verdict rule.Verdict
	cause   rule.Cause
}

// picture is what a change of makes a close look worth while.
type picture struct {
	verdict rule.Verdict
	cause   rule.Cause
	listens bool
	ready   bool
}

// due tells whether to look closely now. quiet is for how long nothing has
// moved: the evidence of a stall is taken at its beginning.
func (c *closeLooks) due(j *rules.Judgement, quiet time.Duration, now time.Time) bool {
	if quiet < quietFirst {
		c.seen = false
	} else if !c.seen && now.Sub(c.at) >= c.pause {
		c.seen = true
		return true
	}
	p := picture{j.Verdict, j.Cause, j.Case.Door.Listens, j.Case.Phases.Ready != nil}
	if !worthAsking(j) {
		return false
	}
	if p != c.picture {
		news := p.ready != c.picture.ready || p.listens != c.picture.listens || p.verdict == rule.Broken || c.at.IsZero()
		c.picture, c.pause = p, closeFirst
		// A picture that flickers is looked at no more often than one that stays.
		return news || now.Sub(c.at) >= closeFirst
	}
	return now.Sub(c.at) >= c.pause
}

// worthAsking tells whether a close look may decide more than a cheap one: not
// while it loads and says so itself, or is not known to be anything yet.
func worthAsking(j *rules.Judgement) bool {
	switch j.Verdict {
	case rule.Gone:
		return false
	case rule.Loading:
		// Without a log, what listens and moves may be up.
		return j.Case.Door.Listens && !j.Case.Phases.Known
	case rule.Unknown:
		return j.Cause != rule.TooShort
	}
	return true
}

// took notes how a close look ended, and what it cost.
func (c *closeLooks) took(j *rules.Judgement, spent time.Duration, now time.Time) {
	if j.Verdict != c.verdict || j.Cause != c.cause {
		c.verdict, c.cause, c.times = j.Verdict, j.Cause, 0
	}
	c.times++
	c.at = now
	if c.times > 1 {
		c.pause *= 2
	}
	c.pause = min(max(c.pause, time.Duration(float64(spent)/closeShare)), closeLongest)
}

// decides tells whether a close look ends the waiting: the server is ready, or
// it cannot become ready any more, or whyhang cannot get to know. times is how
// often in a row close looks said so.
func decides(j *rules.Judgement, times int) bool {
	switch j.Verdict {
	case rule.Ready, rule.Gone:
		return true
	case rule.Deadlocked:
		// What is not proved is looked at again.
		return j.Strength == rule.Proved || times >= 2
	case rule.Broken:
		return j.Strength >= rule.Strong
	case rule.Unresponsive:
		return up(j) && (j.Strength >= rule.Strong || times >= 2)
	case rule.Unknown:
		return undecidable(j)
	}
	return false
}

// up: the server is past its start, as far as anything tells.
func up(j *rules.Judgement) bool {
	return j.Case.Phases.Ready != nil || !j.Case.Phases.Known
}

// undecidable: it is up, and nothing that whyhang may do would tell more.
func undecidable(j *rules.Judgement) bool {
	if c := j.Case.Check; c != nil {
		switch c.Verdict {
		case evidence.CheckUnauthorised, evidence.CheckNoEndpoint:
			return true
		}
		return false
	}
	return j.Cause == rule.NotAsked && up(j) && (j.Case.Asked.Passive || j.Case.Asked.NoCheck)
}

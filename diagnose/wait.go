package diagnose

import (
	"context"
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// WaitOptions are what waiting is asked to do.
type WaitOptions struct {
	Options
	// Timeout is the longest time to wait.
	Timeout time.Duration
	// FollowRestart: when the process ends, wait for one with the same command
	// line to take its place.
	FollowRestart bool
	// Tell, if not nil, is told how it stands after every look.
	Tell func(WaitStatus)
}

// WaitStatus is how it stands.
type WaitStatus struct {
	// Judgement is the last one; nil while there is no process to judge.
	Judgement *rules.Judgement
	// Waited is the time since the waiting began.
	Waited time.Duration
	// Note is what whyhang does now, if it does more than look.
	Note string
}

// waiter waits for one server.
type waiter struct {
	WaitOptions
	since, until time.Time
	pid          int
	parts        []int // the processes of its tree at last
	seen         evidence.Waited
	stalls       stallBook
	closer       closeLooks
}

// Wait looks at a server cheaply and again and again, until it is ready or
// cannot become ready any more, or until the time is up. Whatever decides is
// seen by a close look, which is a run as of Run: the judgement is that run's.
func Wait(ctx context.Context, o WaitOptions) (*rules.Judgement, error) {
	now := time.Now()
	w := &waiter{WaitOptions: o, since: now, until: now.Add(o.Timeout), pid: o.PID, seen: evidence.Waited{Since: now}}
	for {
		j, last, err := w.oneLife(ctx)
		if err != nil || j.Verdict != rule.Gone || !w.FollowRestart || last == nil {
			return w.finish(j), err
		}
		next := w.successor(ctx, last, j)
		if next == 0 {
			return w.finish(j), nil
		}
		w.seen.Restarts = append(w.seen.Restarts, evidence.Restart{PID: w.pid, Ended: time.Now(), NewPID: next})
		w.pid = next
	}
}

// oneLife waits for as long as the process lives. last is what the process was,
// nil if it was never seen alive.
func (w *waiter) oneLife(ctx context.Context) (j *rules.Judgement, last *evidence.Process, err error) {
	s, err := newScreen(ctx, w.optionsFor(w.pid))
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	w.closer = closeLooks{}
	w.stalls.begin()
	broken := 0 // looks in a row
	for {
		j = s.look(ctx)
		w.seen.Looks++
		// A process that has ended and is not reaped yet has no command line.
		if p := s.r.s.Processes; len(p) > 0 && (last == nil || len(p[0].Argv) > 0) {
			was := p[0]
			last, w.parts = &was, w.parts[:0]
			for i := range p {
				w.parts = append(w.parts, p[i].PID)
			}
		}
		w.stalls.note(s, j)
		switch {
		case j.Verdict == rule.Gone:
			w.stalls.end(time.Now())
			return j, last, nil
		case s.r.log.asked() != nil:
			return nil, nil, s.r.log.asked()
		case ctx.Err() != nil:
			s.r.s.Interrupted = true
			return j, last, nil
		}
		w.tell(j, "")
		switch now := time.Now(); {
		case now.After(w.until):
			j, err = w.closely(ctx, j, "the time is up: one last look")
			return j, last, err
		case w.closer.due(j, w.stalls.quiet(), now):
			before := cpuUsed()
			j, err := w.closely(ctx, j, "look closely")
			if err != nil {
				return nil, last, err
			}
			spent := cpuUsed() - before
			s.cost.other += spent
			w.closer.took(j, spent, time.Now())
			if decides(j, w.closer.times) {
				return j, last, nil
			}
			w.stalls.evidence(j)
		}
		// A close look does not know what ended before it.
		if broken++; j.Verdict != rule.Broken || !decides(j, 1) {
			broken = 0
		}
		if broken >= brokenLooks {
			return j, last, nil
		}
		s.rest(ctx, w.until)
	}
}

// brokenLooks is how many cheap looks in a row must say that a part is dead, for
// what a close look cannot see: a part that ended and was reaped while whyhang
// waited. A server that starts it again has the time in between.
const brokenLooks = 6

// optionsFor are the options of a look at a process.
func (w *waiter) optionsFor(pid int) Options {
	o := w.Options
	o.PID = pid
	return o
}

// closely is a whole run.
func (w *waiter) closely(ctx context.Context, j *rules.Judgement, note string) (*rules.Judgement, error) {
	w.tell(j, note)
	return Run(ctx, w.optionsFor(w.pid))
}

func (w *waiter) tell(j *rules.Judgement, note string) {
	if w.Tell != nil {
		w.Tell(WaitStatus{Judgement: j, Waited: time.Since(w.since), Note: note})
	}
}

// finish adds what was seen while waiting, and judges again: rules may look at
// it.
func (w *waiter) finish(j *rules.Judgement) *rules.Judgement {
	if j == nil {
		return nil
	}
	w.seen.Stalls, w.seen.StallsLeftOut = w.stalls.kept, w.stalls.leftOut
	s := j.Case.Snapshot
	s.Waited = &w.seen
	s.Asked.Passive = w.Passive // a screen never asks, whatever was allowed
	return rules.Judge(s)
}

// successor waits for another process with the same command line; 0 if none
// came in time.
func (w *waiter) successor(ctx context.Context, ended *evidence.Process, j *rules.Judgement) int {
	const every = 2 * time.Second
	reader, err := process.NewReader(w.Proc)
	if err != nil {
		return 0
	}
	defer reader.Close()
	for ctx.Err() == nil && time.Now().Before(w.until) {
		if pid := reader.Successor(ctx, ended, w.parts); pid != 0 {
			w.tell(j, fmt.Sprintf("process %d took the place of %d", pid, ended.PID))
			return pid
		}
		w.tell(j, "wait for it to be started again")
		pause(ctx, every)
	}
	return 0
}

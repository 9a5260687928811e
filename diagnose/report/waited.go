package report

import (
	"fmt"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// Waited is what happened while `whyhang wait` waited.
type Waited struct {
	Since  time.Time `json:"since"`
	Looks  int       `json:"looks"`
	Stalls []Stall   `json:"stalls"`
	// StallsLeftOut is how many more there were.
	StallsLeftOut int                `json:"stalls_left_out,omitempty"`
	Restarts      []evidence.Restart `json:"restarts,omitempty"`
}

// Stall is a time in which nothing moved, as it was judged at its beginning.
type Stall struct {
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"`
	// Seconds is how long it lasted; to the end of the run if it has not ended.
	Seconds  float64       `json:"seconds"`
	Verdict  rule.Verdict  `json:"verdict"`
	Cause    rule.Cause    `json:"cause"`
	Sentence string        `json:"sentence"`
	Threads  []ThreadGroup `json:"thread_groups,omitempty"`
}

// waited judges the evidence of each stall again, as a report of that moment
// would have.
func waited(s *evidence.Snapshot) *Waited {
	w := s.Waited
	if w == nil {
		return nil
	}
	out := &Waited{Since: w.Since, Looks: w.Looks, Stalls: []Stall{}, StallsLeftOut: w.StallsLeftOut, Restarts: w.Restarts}
	for _, st := range w.Stalls {
		if st.Snapshot == nil {
			continue
		}
		j := rules.Judge(st.Snapshot)
		until := s.Taken
		if st.Ended != nil {
			until = *st.Ended
		}
		out.Stalls = append(out.Stalls, Stall{Began: st.Began, Ended: st.Ended, Seconds: round(max(0, until.Sub(st.Began).Seconds()), 1),
			Verdict: j.Verdict, Cause: j.Cause, Sentence: j.Sentence, Threads: threads(st.Snapshot)})
	}
	return out
}

// waited is the part of the text report about the waiting.
func (t *texter) waited(r *Report) {
	w := r.Waited
	if w == nil {
		return
	}
	t.title("Waited")
	t.wrap("  ", fmt.Sprintf("%s, since %s, %s", age(r.Taken.Sub(w.Since).Seconds()), w.Since.Format("15:04:05"), count(w.Looks, "look", "looks")))
	for _, x := range w.Restarts {
		t.wrap("  - ", fmt.Sprintf("process %d ended before %s, process %d took its place", x.PID, x.Ended.Format("15:04:05"), x.NewPID))
	}
	for i, s := range w.Stalls {
		if i == 1 && w.StallsLeftOut > 0 {
			t.line("  … %d more", w.StallsLeftOut)
		}
		until := "to the end"
		if s.Ended != nil {
			until = "to " + s.Ended.Format("15:04:05")
		}
		t.wrap("  - ", fmt.Sprintf("nothing moved from %s %s (%s): %s (%s). %s", s.Began.Format("15:04:05"), until, age(s.Seconds), s.Verdict, s.Cause, s.Sentence))
		for k, g := range s.Threads {
			if k == 3 {
				break
			}
			l := fmt.Sprintf("    %5d x %s", g.Count, g.Does)
			if g.Wchan != "" {
				l += " (" + g.Wchan + ")"
			}
			t.line("%s", l)
		}
	}
}

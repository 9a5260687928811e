package diagnose

import (
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

// ReplayOptions are what a replay may ask for anew.
type ReplayOptions struct {
	Strict       bool
	BaselineTokS *float64
	TolerancePct float64
}

// Replay judges a saved snapshot. Nothing that the snapshot names is opened or
// asked.
func Replay(s *evidence.Snapshot, o ReplayOptions) *rules.Judgement {
	if o.Strict {
		s.Asked.Strict = true
	}
	if o.BaselineTokS != nil {
		s.Asked.BaselineTokS, s.Asked.TolerancePct = o.BaselineTokS, o.TolerancePct
	}
	return rules.Judge(s)
}

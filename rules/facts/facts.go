package facts

import "github.com/whyhang/whyhang/probes/evidence"

// Facts are the facts of one snapshot.
type Facts struct {
	Tree   Tree
	Engine Engine
	Heads  []HeadCount
	// Moves is what moved before whyhang asked anything, MovesAsked what moved
	// while the check was under way.
	Moves       Movement
	MovesAsked  Movement
	WaitGraph   WaitGraph
	WeightsDone WeightsDone
	AtStorage   []AtStorage
	Phases      Timeline
	Door        Door
	Comparison  *evidence.Baseline
}

// Of computes the facts of s.
func Of(s *evidence.Snapshot) *Facts {
	f := &Facts{}
	f.Tree = treeOf(s)
	f.Engine = engineOf(s)
	f.Heads = headsOf(s, f)
	f.Moves, f.MovesAsked = movementOf(s), movementAsked(s)
	f.WaitGraph = waitGraphOf(s)
	f.Phases = timelineOf(s, f.Engine)
	f.WeightsDone = weightsOf(s, f)
	f.AtStorage = storageOf(s)
	f.Door = doorOf(s, f)
	f.Comparison = comparisonOf(s)
	return f
}

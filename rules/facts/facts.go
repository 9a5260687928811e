package facts

import "github.com/whyhang/whyhang/probes/evidence"

// Facts are the facts of one snapshot.
type Facts struct {
	Tree   Tree
	Engine Engine
	Heads  []HeadCount
	// LostParts wrote to the log and are not there any more.
	LostParts []LostPart
	// Moves is what moved before whyhang asked anything, MovesAsked what moved
	// while the check was under way.
	Moves      Movement
	MovesAsked Movement
	// Counted is what the engine counts of itself.
	Counted     Counters
	WaitGraph   WaitGraph
	WeightsDone WeightsDone
	AtStorage   []AtStorage
	Phases      Timeline
	Door        Door
	Meetings    []Meeting
	Comparison  *evidence.Baseline
	// Compilers are those that live in the tree, Naps the threads that look for
	// something again and again.
	Compilers Compilers
	Naps      []Nap
	// LockFiles are lock files that may keep the tree waiting.
	LockFiles []LockFile
	Limits    Limits
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
	f.LostParts = lostParts(s, f)
	f.WeightsDone = weightsOf(s, f)
	f.AtStorage = storageOf(s)
	f.Door = doorOf(s, f)
	f.Meetings = meetingsOf(s, f)
	f.Counted = countersOf(s)
	f.Comparison = comparisonOf(s)
	f.Compilers = compilersOf(s, f)
	f.Naps = napsOf(s)
	f.LockFiles = lockFilesOf(s, f)
	f.Limits = limitsOf(s, &f.Moves)
	return f
}

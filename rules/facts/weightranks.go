package facts

import (
	"cmp"
	"math"
	"path"
	"regexp"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// readers looks at every process that has weight files in its hands, finds
// those that read the model side by side, and fills in how far it is. It gives
// the curve that the time left is reckoned from.
//
// Ranks are siblings: a parent that looked at a file and children that inherited
// its mappings are none. Two ranks may each read the whole model (tensor
// parallel engines open every shard in every rank and copy out their slice) or
// each its own files. The files tell: ranks that were seen with the same file
// read the whole; ranks whose files are named after them (rank-3,
// consolidated.03) or whose sum fits the bar of the log read a part. In doubt
// each reads the whole, which never promises an end too early.
func (w *WeightsDone) readers(s *evidence.Snapshot, f *Facts) []sample {
	all := readersOf(s)
	lead := leaderOf(all)
	if lead < 0 {
		return nil
	}
	w.Ranks = ranksOf(s, f, all, lead)
	if len(w.Ranks) < 2 {
		w.Ranks = nil
		w.take(all[lead])
		return all[lead].curve
	}
	w.Split = w.isSplit(f)
	if w.Split {
		return w.sum()
	}
	// The furthest behind of those that still move; if none moves, of all.
	slices.SortStableFunc(w.Ranks, func(a, b RankDone) int { return cmp.Compare(a.Done, b.Done) })
	behind := slices.IndexFunc(w.Ranks, func(r RankDone) bool { return r.Moves() })
	behind = max(behind, 0)
	w.take(w.Ranks[behind])
	return w.Ranks[behind].curve
}

func (w *WeightsDone) take(r RankDone) {
	w.Known, w.DoneBytes, w.How, w.At, w.PID = true, r.Done, r.How, r.At, r.PID
}

// sum adds the curves of ranks that read a part each.
func (w *WeightsDone) sum() []sample {
	var total []sample
	var done float64
	least := 0
	for i, r := range w.Ranks {
		done += r.Done
		if r.Done < w.Ranks[least].Done {
			least = i
		}
		if i == 0 {
			total = slices.Clone(r.curve)
			continue
		}
		for k := range total {
			total[k].done += doneAt(r.curve, total[k].s)
		}
	}
	w.take(w.Ranks[least])
	w.DoneBytes = done
	w.How = "the sum over ranks that read a part each, here that of the last"
	return total
}

// doneAt is the last value of a curve not after s, the first before it begins.
func doneAt(c []sample, s float64) float64 {
	done := c[0].done
	for i := range c {
		if c[i].s <= s+1e-9 {
			done = c[i].done
		}
	}
	return done
}

// readersOf are all processes with a count of how far they are.
func readersOf(s *evidence.Snapshot) []RankDone {
	sizes := sizesOf(s)
	var all []RankDone
	for i := range s.Processes {
		p := &s.Processes[i]
		curve, how := curveOf(s, p, sizes)
		if len(curve) == 0 || curve[len(curve)-1].done <= 0 {
			continue
		}
		last := curve[len(curve)-1]
		all = append(all, RankDone{PID: p.PID, Done: last.done, Moved: last.done - curve[0].done, How: how, At: last.at, curve: curve, holds: holdsOf(s, p)})
	}
	return all
}

// leaderOf is the process that came furthest, one that moves before those that
// do not; -1 if there is none.
func leaderOf(all []RankDone) int {
	lead := -1
	for i := range all {
		if lead < 0 || cmp.Or(cmp.Compare(moving(all[i]), moving(all[lead])), cmp.Compare(all[i].Done, all[lead].Done)) > 0 {
			lead = i
		}
	}
	return lead
}

func moving(r RankDone) int {
	if steadyRate(r.curve) > 0 {
		return 1
	}
	return 0
}

// notReading is the share of the leader's bytes below which a sibling that does
// not move has only looked at a header.
const notReading = 0.02

// ranksOf are the leader and its siblings that read as well.
func ranksOf(s *evidence.Snapshot, f *Facts, all []RankDone, lead int) []RankDone {
	parent, helper := map[int]int{}, map[int]bool{}
	for i := range s.Processes {
		parent[s.Processes[i].PID] = s.Processes[i].PPID
		helper[s.Processes[i].PID] = engines.IsHelper(&s.Processes[i])
	}
	above := parent[all[lead].PID]
	if _, inTree := f.Tree.Index[above]; !inTree {
		return nil
	}
	var ranks []RankDone
	for i, r := range all {
		if i == lead || parent[r.PID] == above && !helper[r.PID] && (moving(r) == 1 || r.Done > notReading*all[lead].Done) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// holdsOf are the weight files that a process was seen with.
func holdsOf(s *evidence.Snapshot, p *evidence.Process) map[string]bool {
	holds := map[string]bool{}
	for i := range p.Files {
		holds[p.Files[i].Path] = true
	}
	for n := range s.Frames {
		if j := ProcessAt(&s.Frames[n], p.PID); j >= 0 {
			for _, f := range s.Frames[n].Processes[j].Files {
				holds[f.Path] = true
			}
		}
	}
	return holds
}

// ofRank are names of files that belong to one rank: model-rank-0-part-1, mp_rank_00,
// consolidated.03.pth, rank3.engine, tp_2.
var ofRank = regexp.MustCompile(`(?i)(^|[^a-z])(mp_)?(rank|tp)[-_]?\d+|^consolidated\.\d+\.`)

func (w *WeightsDone) isSplit(f *Facts) bool {
	seen := map[string]bool{}
	named := true
	for _, r := range w.Ranks {
		if len(r.holds) == 0 {
			return false
		}
		for file := range r.holds {
			if seen[file] {
				return false // two ranks have it
			}
			named = named && ofRank.MatchString(path.Base(file))
		}
		for file := range r.holds {
			seen[file] = true
		}
	}
	if named {
		return true
	}
	share, _, ok := f.Phases.weightShare()
	if !ok || w.TotalBytes <= 0 || share <= 0 || share >= 1 {
		return false
	}
	var sum, least float64
	for i, r := range w.Ranks {
		sum += r.Done
		if i == 0 || r.Done < least {
			least = r.Done
		}
	}
	return math.Abs(sum/w.TotalBytes-share) < math.Abs(least/w.TotalBytes-share)
}

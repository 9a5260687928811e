package facts

import (
	"math"
	"strconv"

	"github.com/whyhang/whyhang/probes/evidence"
)

// WeightsDone is how far the weights have been read.
type WeightsDone struct {
	// Held: a process of the tree has weight files mapped or open, or the
	// command line names a model directory that could be read.
	Held bool
	// Path and TotalBytes are the model's; Total 0: not known. Where every rank
	// reads the whole model, it is still the model's size: what one rank reads.
	Path       string
	TotalBytes float64
	// Known: DoneBytes is known. How says from what.
	Known     bool
	DoneBytes float64
	How       string
	At        []any
	// PID is the process that is furthest behind, or the only one.
	PID int
	// Ranks are the processes that read the model side by side, the one that is
	// furthest behind first; empty for one alone. Split: each reads a part of it,
	// and DoneBytes is their sum. Else each reads all of it, and DoneBytes is
	// that of the one furthest behind.
	Ranks []RankDone
	Split bool
	// Moved is how many bytes came during the window; Rate in bytes per second
	// is what the time left was reckoned with, 0 if it did not move.
	Moved float64
	Rate  float64
	// Uncertainty of the rate, as a share of it.
	Uncertainty float64
	// ETALow, ETA and ETAHigh are seconds to the last byte; valid if Rate > 0
	// and the total is known.
	ETALow, ETA, ETAHigh float64
}

// RankDone is how far one of several processes has come.
type RankDone struct {
	PID   int
	Done  float64
	Moved float64
	How   string
	At    []any
	curve []sample
	// holds are the weight files it has had in its hands.
	holds map[string]bool
}

// Moves tells whether it came further during the window.
func (r *RankDone) Moves() bool { return r.Moved >= noiseBytes }

// noiseBytes is how much a process may map in by the way (a library, a page of
// its own code) without having read any weights.
const noiseBytes = 256 << 10

// Moving tells whether the weights came further during the window.
func (w *WeightsDone) Moving() bool { return w.Known && w.Rate > 0 && w.Moved >= noiseBytes }

// Complete tells whether all bytes have been read, by this count.
func (w *WeightsDone) Complete() bool {
	return w.Known && w.TotalBytes > 0 && w.DoneBytes >= 0.995*w.TotalBytes
}

// maxUncertainty is the uncertainty of a rate beyond which a longer look pays.
const maxUncertainty = 0.12

// Sure tells whether the time left is known as well as it gets in a short look.
func (w *WeightsDone) Sure() bool { return w.Uncertainty <= maxUncertainty }

func weightsOf(s *evidence.Snapshot, f *Facts) WeightsDone {
	w := WeightsDone{}
	w.heldBy(s)
	if !w.Held {
		return w
	}
	curve := w.readers(s, f)
	if shards, at, ok := f.Phases.weightShare(); ok && w.TotalBytes > 0 {
		w.byLog(shards*w.TotalBytes, at)
	}
	if len(curve) >= 2 {
		w.Moved = curve[len(curve)-1].done - curve[0].done
	}
	if w.TotalBytes > 0 {
		w.DoneBytes = math.Min(w.DoneBytes, w.TotalBytes)
	}
	w.estimate(curve, w.longRun(s, f))
	return w
}

// heldBy finds which model it is, and how large.
func (w *WeightsDone) heldBy(s *evidence.Snapshot) {
	if s.Weights != nil {
		w.Held, w.Path = true, s.Weights.Path
		w.TotalBytes = float64(max(s.Weights.TotalBytes, s.Weights.ExpectedBytes))
	}
	var held float64
	seen := map[string]bool{}
	for i := range s.Processes {
		for j := range s.Processes[i].Files {
			file := &s.Processes[i].Files[j]
			w.Held = true
			if w.Path == "" {
				w.Path = file.Path
			}
			if file.SizeBytes != nil && !seen[file.Path] {
				seen[file.Path] = true
				held += float64(*file.SizeBytes)
			}
		}
	}
	for n := range s.Frames {
		for j := range s.Frames[n].Processes {
			// Opened since: loaders take one shard after another.
			if files := s.Frames[n].Processes[j].Files; len(files) > 0 {
				w.Held = true
				if w.Path == "" {
					w.Path = files[0].Path
				}
			}
		}
	}
	w.TotalBytes = max(w.TotalBytes, held)
}

// byLog takes the count of the log where it is further: shards that are closed
// again leave no trace in /proc. The bar is that of one rank; those that are
// about as far as the first by their files are taken to be as far by the bar.
func (w *WeightsDone) byLog(done float64, at []any) {
	if len(w.Ranks) > 1 && !w.Split {
		if first := w.Ranks[len(w.Ranks)-1].Done; w.DoneBytes < 0.8*first {
			return
		}
	}
	if done > w.DoneBytes {
		w.Known, w.DoneBytes, w.How, w.At = true, done, "shards in the log", at
	}
}

// Bytes writes a number of bytes for people.
func Bytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for math.Abs(n) >= 1023.5 && i < len(units)-1 {
		n /= 1024
		i++
	}
	if i == 0 || math.Abs(n) >= 100 {
		return strconv.FormatFloat(math.Round(n), 'f', 0, 64) + " " + units[i]
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " " + units[i]
}

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
	// Path and TotalBytes are the model's; Total 0: not known.
	Path       string
	TotalBytes float64
	// Known: DoneBytes is known. How says from what.
	Known     bool
	DoneBytes float64
	How       string
	At        []any
	// PID is the process that is furthest behind, or the only one.
	PID int
	// Moved is how many bytes came during the window; Rate in bytes per second,
	// 0 if it did not move.
	Moved float64
	Rate  float64
	// Uncertainty of the rate, as a share of it.
	Uncertainty float64
	// ETALow, ETA and ETAHigh are seconds to the last byte; valid if Rate > 0
	// and the total is known.
	ETALow, ETA, ETAHigh float64
}

// noiseBytes is how much a process may map in by the way (a library, a page of
// its own code) without having read any weights.
const noiseBytes = 256 << 10

// Moving tells whether the weights came further during the window.
func (w *WeightsDone) Moving() bool { return w.Known && w.Rate > 0 && w.Moved >= noiseBytes }

// Complete tells whether all bytes have been read, by this count.
func (w *WeightsDone) Complete() bool {
	return w.Known && w.TotalBytes > 0 && w.DoneBytes >= 0.995*w.TotalBytes
}

func weightsOf(s *evidence.Snapshot, f *Facts) WeightsDone {
	w := WeightsDone{}
	if s.Weights != nil {
		w.Held, w.Path, w.TotalBytes = true, s.Weights.Path, float64(s.Weights.TotalBytes)
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
	if !w.Held {
		return w
	}
	curve := w.bestCurve(s)
	if shards, at, ok := f.Phases.weightShare(); ok && w.TotalBytes > 0 {
		// Shards that are closed again leave no trace in /proc: the log knows.
		if byLog := shards * w.TotalBytes; byLog > w.DoneBytes {
			w.Known, w.DoneBytes, w.How, w.At = true, byLog, "shards in the log", at
		}
	}
	if len(curve) >= 2 {
		w.Rate, w.Uncertainty = rateOf(curve)
		w.Moved = curve[len(curve)-1].done - curve[0].done
	}
	if w.TotalBytes > 0 {
		w.DoneBytes = math.Min(w.DoneBytes, w.TotalBytes)
	}
	w.estimate(curve)
	return w
}

// estimate fills the time left. The range comes from the halves of the window,
// and is never narrower than a tenth: two seconds cannot promise more.
func (w *WeightsDone) estimate(c []sample) {
	if w.Rate <= 0 || w.TotalBytes <= 0 {
		return
	}
	left := w.TotalBytes - w.DoneBytes
	w.ETA = left / w.Rate
	spread := max(0.1, min(0.9, w.Uncertainty))
	slow, fast := w.Rate*(1-spread), w.Rate*(1+spread)
	if n := len(c); n >= 6 {
		for _, half := range [][]sample{c[:n/2+1], c[n/2:]} {
			if r, unsure := rateOf(half); r > 0 && unsure < 0.2 {
				slow, fast = min(slow, r), max(fast, r)
			}
		}
	}
	w.ETALow, w.ETAHigh = left/fast, left/slow
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

package facts

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// average is a rate over a longer time than whyhang has watched.
type average struct {
	rate    float64 // bytes per second
	seconds float64
	from    begun
}

// begun says how well it is known when the reading began.
type begun int

const (
	// fromAge counts the life of a process that surely did other things first:
	// its average is a lower bound.
	fromAge begun = iota
	// fromStart counts the life of a process that may have read from the start.
	fromStart
	// fromLog is what the log says.
	fromLog
)

// longRun is the best average that the evidence holds, nil if it holds none.
func (w *WeightsDone) longRun(s *evidence.Snapshot, f *Facts) *average {
	if len(s.Frames) == 0 || w.DoneBytes <= 0 {
		return nil
	}
	now := s.Frames[len(s.Frames)-1].At
	var logged *average
	for i := range f.Phases.Spans {
		sp := &f.Phases.Spans[i]
		if sp.Phase != evidence.PhaseWeights || sp.Begin == nil || sp.EndLine != 0 {
			continue
		}
		if e := now.Sub(*sp.Begin).Seconds(); e > 0 && (logged == nil || e > logged.seconds) {
			logged = &average{w.DoneBytes / e, e, fromLog}
		}
	}
	if logged != nil {
		return logged
	}
	if share, elapsed := f.Phases.barElapsed(); share > 0 && elapsed >= leastAverage {
		return &average{share * w.TotalBytes / elapsed, elapsed, fromLog}
	}
	i, ok := f.Tree.Index[w.PID]
	if !ok || w.How == "read calls" || w.How == "shards in the log" {
		return nil // bytes of other files, or of an unknown time
	}
	p := &s.Processes[i]
	from := fromStart
	for _, lib := range p.Libraries {
		if strings.Contains(lib, "python") {
			from = fromAge // it imports for half a minute before it reads
		}
	}
	if e := now.Sub(p.Started).Seconds(); !p.Started.IsZero() && e >= leastAverage {
		return &average{w.DoneBytes / e, e, from}
	}
	return nil
}

// leastAverage is the shortest time, in seconds, whose average says more than
// the window.
const leastAverage = 4

// tqdmElapsed is how a bar of tqdm ends: "[01:10<01:24, 2.41s/it]".
var tqdmElapsed = regexp.MustCompile(`\[(?:(\d+):)?(\d+):(\d+)<`)

// barElapsed is the share of the weights that the last bar of the log shows,
// and the seconds it took by the bar's own clock; 0 if there is none.
func (t *Timeline) barElapsed() (share, seconds float64) {
	for i := len(t.events) - 1; i >= 0; i-- {
		ev := &t.events[i]
		if ev.Mark.Phase != evidence.PhaseWeights {
			continue
		}
		percent, err := strconv.ParseFloat(ev.Hit.Values["percent"], 64)
		m := tqdmElapsed.FindStringSubmatch(ev.Hit.Text)
		if err != nil || m == nil {
			continue
		}
		for _, part := range m[1:] {
			n, _ := strconv.ParseFloat(part, 64)
			seconds = seconds*60 + n
		}
		// Done of total is finer than whole percents.
		done, err1 := strconv.ParseFloat(ev.Hit.Values["done"], 64)
		total, err2 := strconv.ParseFloat(ev.Hit.Values["total"], 64)
		if err1 == nil && err2 == nil && total > 0 {
			return done / total, seconds
		}
		return percent / 100, seconds
	}
	return 0, 0
}

// How rates are weighed against each other.
const (
	// longestCycle is the longest cycle of reading and resting that is expected,
	// in seconds.
	longestCycle = 20
	// alike is how far apart two rates of one load may be.
	alike = 0.25
	// lateStart is how much slower the average over a life may be than what the
	// window shows well before the reading is taken to have begun late. A little
	// less may be either, and the middle of both is not far from any.
	lateStart = 1.55
	// mostRest is how much faster a loader may read than it does on average, its
	// rests counted in: where the window shows no rest, and where it shows none in
	// a long look.
	mostRest, mostUnseenRest = 3.5, 2.0
	// startError is how well the start of a process is known, in seconds: it
	// counts from btime of /proc/stat, whole seconds.
	startError = 1
	// longLook is a window in seconds in which a loader that rests shows it.
	longLook = 9.8
)

// estimate fills the rate and the time left.
//
// The window alone is enough for a load that flows, and for one that was seen to
// burst, rest and burst again. A window that shows a part of a cycle is not: then
// the average since the reading began decides, if the log or the age of the
// process tells it. Where the two disagree the range holds both. It is never
// narrower than a tenth: two seconds cannot promise more.
func (w *WeightsDone) estimate(c []sample, long *average) {
	f := flowOf(c)
	if w.Rate, w.Uncertainty = f.rate, f.uncertainty; f.rate <= 0 {
		return
	}
	spread := f.spread()
	low, high := f.rate*(1-spread), f.rate*(1+spread)
	if f.pauses > 0 && f.cycles == 0 {
		high = math.Max(high, f.peak)
	}
	switch {
	case long == nil:
	case f.late(long):
		// It did something else first: it is at least as fast as that.
		rest := mostRest
		if f.steady() && f.seconds >= longLook {
			rest = mostUnseenRest
		}
		low = math.Min(low, math.Max(long.rate*0.95, f.rate/rest))
		w.Rate = f.afterImports(long)
	default:
		off := math.Min(1, longestCycle/4/long.seconds) // where in its cycle it is
		if f.cycles > 0 {
			off = math.Min(off, f.seconds/float64(f.cycles)/4/long.seconds)
		}
		off = math.Max(off, 0.03)
		w.Rate = f.with(long, off)
		if f.pauses > 0 { // the window shows how it works, the average how fast
			low, high = w.Rate, w.Rate
			switch {
			case f.cycles > 0 && long.from == fromStart:
				low, high = math.Min(low, f.rate*(1-spread/2)), math.Max(high, f.rate*(1+spread/2))
			case f.cycles >= 2:
				low, high = math.Min(low, f.rate), math.Max(high, f.rate)
			case long.from == fromStart: // and it may have begun late
				high = f.peak
			}
		}
		wide := math.Min(0.7, math.Max(0.1, 1.5*off))
		low = math.Min(low, math.Min(w.Rate, long.rate)*(1-wide))
		high = math.Max(math.Min(high, 2*long.rate), math.Max(w.Rate, long.rate)*(1+wide))
		apart := math.Abs(math.Log(f.rate / long.rate))
		if long.from == fromStart {
			apart -= startError / long.seconds
		}
		w.Uncertainty = math.Max(math.Min(f.uncertainty, off), 0.4*apart)
		if f.rate < 0.95*long.rate && f.pauses == 0 || f.rate < 0.9*long.rate && f.cycles >= 2 {
			// It slows down, and may go on doing so.
			low = math.Min(low, f.rate*math.Max(0.75, f.rate/long.rate)*0.9)
		}
	}
	if w.TotalBytes <= 0 {
		return
	}
	left := w.TotalBytes - w.DoneBytes
	w.ETA = left / w.Rate
	// A rest may be yet to come, or be just over.
	w.ETALow = math.Min(left/high, w.ETA*0.9) - f.pauseS/2
	w.ETALow = math.Max(w.ETALow, 0.5*left/math.Max(high, f.peak))
	w.ETAHigh = math.Max(left/low, w.ETA/0.9) + f.pauseS/2
	if share := w.leastShare(); share > 0 {
		w.ETALow = math.Min(w.ETALow, math.Max(0, share-w.DoneBytes)/high)
	}
}

// late tells whether an average over the life of a process counts other things
// than reading.
func (f *flow) late(long *average) bool {
	ratio := f.rate / long.rate
	sure := f.cycles >= 2 || f.steady() && f.seconds >= longLook
	return long.from == fromAge || long.from == fromStart && (ratio > mostRest || sure && ratio > lateStart)
}

// imports is how long a Python server imports before it reads, in seconds: 20 to
// 40 in the recorded starts of vLLM and SGLang.
const imports = 30

// afterImports weighs the rate of the window and the average over a life that
// began with something else. A window that does not show how a loader rests says
// less than a guess at when it began.
func (f *flow) afterImports(long *average) float64 {
	rate := math.Max(f.rate, long.rate)
	if long.from != fromAge {
		if f.pauses > 0 && f.cycles == 0 {
			return math.Sqrt(rate * long.rate)
		}
		return rate
	}
	guess := long.rate * long.seconds / math.Max(long.seconds-imports, long.seconds/2)
	guess = math.Max(long.rate, math.Min(guess, f.peak))
	switch {
	case f.cycles >= 2, f.pauses == 0 && rate < guess*(1+alike):
		return rate
	case f.pauses == 0 && rate < guess*lateStart, f.cycles == 1 && rate < guess*lateStart:
		return math.Sqrt(rate * guess)
	}
	return guess
}

// spread is how far off the rate of the window may be, as a share.
func (f *flow) spread() float64 {
	switch {
	case f.pauses == 0:
		return math.Max(0.1, math.Min(0.6, f.uncertainty+f.unevenness/2))
	case f.cycles == 0:
		return 0.6
	}
	return math.Max(0.1, math.Min(0.6, f.uncertainty+0.25/math.Sqrt(float64(f.cycles))))
}

// with weighs the rate of the window and the average.
func (f *flow) with(long *average, off float64) float64 {
	ratio := f.rate / long.rate
	switch {
	case f.cycles == 0 && f.pauses > 0:
		return long.rate
	case f.cycles > 0 && ratio > 1+alike && long.from == fromStart:
		return f.rate // it began late
	case f.cycles == 0 && ratio > 1+alike && long.from == fromStart:
		return math.Sqrt(f.rate * long.rate) // either of two
	case f.cycles == 0 && ratio > 1+alike:
		return long.rate // between two rests that the window does not reach
	case f.cycles == 0 && ratio < 1-alike:
		return f.rate // steadily slower than before
	case f.cycles == 0 && math.Abs(ratio-1) > 0.05 && f.unevenness < 0.3:
		return (f.rate + long.rate) / 2 // faster or slower than before
	}
	// Weights by what each leaves open.
	own := math.Max(0.03, f.uncertainty)
	if f.cycles > 0 {
		own += 0.15 / math.Sqrt(float64(f.cycles))
	}
	a, b := 1/(own*own), 1/(off*off)
	return (a*f.rate + b*long.rate) / (a + b)
}

// leastShare is the least that a rank may have to read of a model that several
// have mapped: engines of several ranks copy a slice out of each tensor and
// touch no other page. 0 where that cannot be.
func (w *WeightsDone) leastShare() float64 {
	if len(w.Ranks) < 2 || w.Split || w.How != "mapped file memory" && !strings.HasPrefix(w.How, "its offset") {
		return 0
	}
	for _, r := range w.Ranks {
		if r.PID == w.PID && len(r.At) > 0 && r.At[len(r.At)-1] == "pos_bytes" {
			return 0 // it reads
		}
	}
	return w.TotalBytes / float64(len(w.Ranks))
}

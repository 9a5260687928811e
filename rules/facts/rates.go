package facts

import "math"

// steadyRate is the rate of a curve in bytes per second, 0 if it does not grow.
func steadyRate(c []sample) float64 { return flowOf(c).rate }

// flow is what a curve shows of how bytes come.
type flow struct {
	// rate is in bytes per second; uncertainty is a share of it.
	rate, uncertainty float64
	// peak is the rate while bytes come.
	peak float64
	// cycles is how many times it was seen to burst, rest and burst again; pauses
	// how many rests were seen, whole or not. pauseS is the longest, in seconds.
	cycles, pauses int
	pauseS         float64
	// unevenness is how much the rates between two looks differ, as a share.
	unevenness float64
	// seconds is the length of the curve.
	seconds float64
}

// steady: bytes came all the time.
func (f *flow) steady() bool { return f.rate > 0 && f.pauses == 0 }

// restShare is the share of the peak rate below which a loader rests: some
// file system or other is always at work a little.
const restShare = 0.03

// flowOf measures a curve. A loader that works in bursts (read a shard, convert
// it, read the next) is measured from the end of one burst to the end of a
// later one, or from beginning to beginning: so that the window need not fit the
// bursts. When a burst ended is known no better than the time between two looks.
func flowOf(c []sample) flow {
	var f flow
	if len(c) < 2 {
		return f
	}
	first, last := c[0], c[len(c)-1]
	f.seconds = last.s - first.s
	if last.done <= first.done || f.seconds <= 0 {
		return f
	}
	var sum, squares, n float64
	for i := 1; i < len(c); i++ {
		if d := c[i].s - c[i-1].s; d > 0.05 {
			r := (c[i].done - c[i-1].done) / d
			f.peak = max(f.peak, r)
			sum, squares, n = sum+r, squares+r*r, n+1
		}
	}
	if sum > 0 {
		f.unevenness = math.Sqrt(math.Max(0, squares*n/(sum*sum)-1))
	}
	gap := f.seconds / float64(len(c)-1)
	rests := restsOf(c, f.peak)
	var begins, ends []sample
	since := first.s
	for i := 2; i < len(c); i++ {
		switch {
		case rests[i] && !rests[i-1]:
			// It ended somewhere in the interval before: in the middle, say.
			ends = append(ends, sample{s: (c[i-1].s + c[i-2].s) / 2, done: c[i-1].done})
			since = c[i-1].s
		case !rests[i] && rests[i-1]:
			begins = append(begins, sample{s: (c[i].s + c[i-1].s) / 2, done: c[i-1].done})
			f.pauseS = max(f.pauseS, c[i-1].s-since)
		}
	}
	if rests[len(c)-1] {
		f.pauseS = max(f.pauseS, last.s-since)
	}
	f.pauses = max(len(begins), len(ends))
	whole, marks := begins, len(begins)
	if len(ends) > marks {
		whole, marks = ends, len(ends)
	}
	f.rate = (last.done - first.done) / f.seconds
	switch {
	case f.pauses == 0:
		f.uncertainty = gap / f.seconds
	case marks < 2:
		f.uncertainty = 1
	default:
		f.cycles = marks - 1
		between := whole[marks-1].s - whole[0].s
		f.rate, f.uncertainty = (whole[marks-1].done-whole[0].done)/between, gap/between+0.1/float64(f.cycles)
	}
	return f
}

// shortRest is the longest rest in seconds that is not told from a loader's
// ordinary steps: two looks may fall between two of them.
const shortRest = 0.4

// restsOf tells for each interval (by the sample at its end) whether the loader
// rested in it.
func restsOf(c []sample, peak float64) []bool {
	rests := make([]bool, len(c))
	begin := 1
	for i := 1; i < len(c); i++ {
		rests[i] = c[i].done-c[i-1].done <= restShare*peak*(c[i].s-c[i-1].s)
		if rests[i] && !rests[i-1] {
			begin = i
		}
		ended := rests[i] && (i == len(c)-1 || c[i+1].done-c[i].done > restShare*peak*(c[i+1].s-c[i].s))
		if ended && c[i].s-c[begin-1].s < shortRest {
			for k := begin; k <= i; k++ {
				rests[k] = false
			}
		}
	}
	return rests
}

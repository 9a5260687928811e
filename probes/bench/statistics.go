package bench

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/whyhang/whyhang/probes/evidence"
)

// estimate is the mean of x with its spread: sample standard deviation, and a
// 95 % confidence interval by Student's t with n-1 degrees of freedom.
func estimate(x []float64) evidence.Estimate {
	e := evidence.Estimate{N: len(x)}
	if e.N == 0 {
		return e
	}
	e.Mean = stat.Mean(x, nil)
	if e.N < 2 {
		return e
	}
	e.Std = stat.StdDev(x, nil)
	e.SE = stat.StdErr(e.Std, float64(e.N))
	if e.Mean != 0 {
		e.CV = e.Std / e.Mean
	}
	e.TCritical = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(e.N - 1)}.Quantile(0.975)
	e.CILow, e.CIHigh = e.Mean-e.TCritical*e.SE, e.Mean+e.TCritical*e.SE
	return e
}

// scatters says whether the interval is wider than enoughPct of the mean to
// either side, or not known.
func scatters(e evidence.Estimate) bool {
	return e.N < 2 || e.CIHigh-e.Mean > enoughPct/100*e.Mean
}

// quantile is the linearly interpolated quantile of numpy's default, type 7
// of Hyndman and Fan (1996); gonum has types 1 and 4 only. NaN for no values.
func quantile(p float64, x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	at := p * float64(len(x)-1)
	low := min(int(at), len(x)-1)
	high := min(low+1, len(x)-1)
	return x[low] + (at-float64(low))*(x[high]-x[low])
}

// spread is mean, median and sample standard deviation; zeros for no values,
// and a zero deviation for one.
func spread(x []float64) (mean, median, std float64) {
	if len(x) == 0 {
		return 0, 0, 0
	}
	e := estimate(x)
	return e.Mean, quantile(0.5, x), e.Std
}

package diagnose

import (
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Options are what one run is asked to do.
type Options struct {
	PID int
	// Window is the longest time to watch for movement.
	Window time.Duration
	// Passive forbids all HTTP, NoCheck the 2+2 check (and with it the
	// benchmark), NoBench the benchmark.
	Passive, NoCheck, NoBench bool
	Strict                    bool
	CheckTimeout, BenchBudget time.Duration
	BaselineTokS              *float64
	TolerancePct              float64
	// Log, URL and Model are for what cannot be found; APIKey is the key itself.
	Log, URL, Model, APIKey string
	// Proc is the proc file system, "" for /proc.
	Proc string
	// Signatures are log lines to know beside the built-in ones.
	Signatures []evidence.Signature
	Tool       evidence.Tool
	// Progress, if not nil, is told what the run does now.
	Progress func(string)
}

// asked is the part of the options that belongs to the evidence.
func (o *Options) asked() evidence.Asked {
	return evidence.Asked{
		PID: o.PID, WindowMS: float64(o.Window.Milliseconds()), Passive: o.Passive, NoCheck: o.NoCheck, NoBench: o.NoBench,
		Strict: o.Strict, BaselineTokS: o.BaselineTokS, TolerancePct: o.TolerancePct,
		Log: o.Log, URL: o.URL, Model: o.Model, ProcDir: o.Proc,
	}
}

func (o *Options) tell(s string) {
	if o.Progress != nil {
		o.Progress(s)
	}
}

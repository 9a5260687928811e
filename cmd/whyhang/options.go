package main

import (
	"fmt"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/probes/evidence"
)

// options are the flags, as they stand on the command line.
type options struct {
	format         string
	json, markdown bool
	output, save   string
	color          string
	exitZero       bool

	window                    time.Duration
	passive, noCheck, noBench bool
	sweep                     string
	benchBudget, checkTimeout time.Duration
	baseline, tolerance       string
	strict                    bool
	log, url, model, keyEnv   string
	timeout                   time.Duration
	proc, signatures          string

	flags *pflag.FlagSet
}

// bind declares the flags (contract, design section 2).
func (o *options) bind(f *pflag.FlagSet) {
	o.flags = f
	f.SortFlags = false
	f.StringVar(&o.format, "format", "text", "`text`, markdown, json or html")
	f.BoolVar(&o.json, "json", false, "short for --format json")
	f.BoolVar(&o.markdown, "markdown", false, "short for --format markdown")
	f.StringVarP(&o.output, "output", "o", "", "write the report to this `FILE` (- is standard output)")
	f.StringVar(&o.save, "save", "", "also write the snapshot to this `FILE`, for replay (packed if it ends in .gz)")
	f.DurationVar(&o.window, "window", 10*time.Second, "longest time to watch for movement")
	f.BoolVar(&o.passive, "passive", false, "send nothing to the server: no HTTP at all")
	f.BoolVar(&o.noCheck, "no-check", false, "do not ask the server what 2+2 is; its counters may be read (--passive sends nothing at all)")
	f.BoolVar(&o.noBench, "no-bench", false, "do not run the short benchmark")
	f.StringVar(&o.sweep, "sweep", "", "after the short benchmark, bursts at these concurrencies (`1,2,4,…`)")
	f.Lookup("sweep").NoOptDefVal = "1,2,4,8,16,32,64,128"
	f.DurationVar(&o.benchBudget, "bench-budget", 60*time.Second, "hard limit for the benchmark")
	f.DurationVar(&o.checkTimeout, "check-timeout", 120*time.Second, "hard limit for the 2+2 check")
	f.StringVar(&o.baseline, "baseline", "", "tok/s of one stream to compare with, as a `NUMBER` or a file that holds it (a report, a benchmark result)")
	f.StringVar(&o.tolerance, "tolerance", "10%", "how far below the baseline is still good")
	f.BoolVar(&o.strict, "strict", false, "ready but distorted (debug flags, eager mode, other traffic) is exit code 10")
	f.StringVar(&o.log, "log", "", "the server's log `FILE`, when it cannot be found")
	f.StringVar(&o.url, "url", "", "the server's base `URL`, when it cannot be found")
	f.StringVar(&o.model, "model", "", "the model's `NAME` in requests")
	f.StringVar(&o.keyEnv, "api-key-env", "", "environment variable that holds the server's API key (`NAME`)")
	f.DurationVar(&o.timeout, "timeout", 60*time.Minute, "how long wait waits")
	f.StringVar(&o.proc, "proc", "/proc", "another proc file system (`DIR`), such as /host/proc in a container")
	f.StringVar(&o.signatures, "signatures", "", "`FILE` with more log lines to know (JSON)")
	f.StringVar(&o.color, "color", "auto", "`auto`, always or never")
	f.BoolVar(&o.exitZero, "exit-zero", false, "exit 0 for every verdict")
}

// check finds mistakes that need no look at the target.
func (o *options) check() error {
	if err := o.checkFormat(); err != nil {
		return err
	}
	if err := o.checkURL(); err != nil {
		return err
	}
	if o.output != "" && o.output == o.save {
		return &usageError{"-o and --save name the same file", "whyhang PID -o report.md --save snapshot.json.gz"}
	}
	switch o.format {
	case "text", "markdown", "json":
	case "html":
		return fmt.Errorf("--format html is not in this version; use text, markdown or json")
	default:
		return &usageError{fmt.Sprintf("--format %q: text, markdown, json or html", o.format), "whyhang PID --format markdown"}
	}
	switch o.color {
	case "auto", "always", "never":
	default:
		return &usageError{fmt.Sprintf("--color %q: auto, always or never", o.color), "whyhang PID --color never"}
	}
	if o.sweep != "" {
		return fmt.Errorf("--sweep is not in this version; without it the short benchmark runs")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"--window", o.window}, {"--bench-budget", o.benchBudget}, {"--check-timeout", o.checkTimeout}, {"--timeout", o.timeout}} {
		if d.value <= 0 {
			return &usageError{fmt.Sprintf("%s %s: must be more than nothing", d.flag, d.value), "whyhang PID " + d.flag + " 10s"}
		}
	}
	return nil
}

// checkFormat takes the short forms for --format, and refuses two that differ.
func (o *options) checkFormat() error {
	short := ""
	switch {
	case o.json && o.markdown:
		return &usageError{"--json and --markdown: one report, one format", "whyhang PID --json"}
	case o.json:
		short = "json"
	case o.markdown:
		short = "markdown"
	}
	if short == "" {
		return nil
	}
	if o.flags != nil && o.flags.Changed("format") && o.format != short {
		return &usageError{fmt.Sprintf("--%s and --format %s: one report, one format", short, o.format), "whyhang PID --" + short}
	}
	o.format = short
	return nil
}

// checkURL takes host:port as people type it, and refuses what is no place to
// send HTTP to.
func (o *options) checkURL() error {
	if o.url == "" {
		return nil
	}
	if !strings.Contains(o.url, "://") {
		o.url = "http://" + o.url
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return &usageError{fmt.Sprintf("--url %q: an http or https URL with a host", o.url), "whyhang PID --url http://127.0.0.1:8000"}
	}
	return nil
}

// checkEmpty refuses flags that were given without a value, as by a variable
// of a script that is not set.
func (o *options) checkEmpty() error {
	var err error
	o.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
			err = &usageError{fmt.Sprintf("--%s has an empty value", f.Name), "whyhang --help"}
		}
	})
	return err
}

// diagnosis are the options of one run.
func (o *options) diagnosis(w world, pid int) (diagnose.Options, error) {
	d := diagnose.Options{
		PID: pid, Window: o.window, Passive: o.passive, NoCheck: o.noCheck, NoBench: o.noBench, Strict: o.strict,
		CheckTimeout: o.checkTimeout, BenchBudget: o.benchBudget, Log: o.log, URL: o.url, Model: o.model,
		Proc: o.proc, Tool: tool(), Progress: progress(w.Stderr),
	}
	var err error
	if d.BaselineTokS, d.TolerancePct, err = o.comparison(); err != nil {
		return d, err
	}
	if o.keyEnv != "" {
		key, ok := w.Env(o.keyEnv)
		if !ok || key == "" {
			return d, fmt.Errorf("--api-key-env %s: that variable is not set here", o.keyEnv)
		}
		d.APIKey = key
	}
	if o.signatures != "" {
		if d.Signatures, err = diagnose.LoadSignatures(o.signatures); err != nil {
			return d, err
		}
	}
	return d, nil
}

// comparison reads --baseline and --tolerance.
func (o *options) comparison() (*float64, float64, error) {
	tolerance, err := strconv.ParseFloat(strings.TrimSuffix(o.tolerance, "%"), 64)
	if err != nil || tolerance < 0 || tolerance >= 100 || math.IsNaN(tolerance) {
		return nil, 0, &usageError{fmt.Sprintf("--tolerance %q: a percentage", o.tolerance), "whyhang PID --tolerance 10%"}
	}
	if o.baseline == "" {
		return nil, tolerance, nil
	}
	if v, err := strconv.ParseFloat(o.baseline, 64); err == nil {
		if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, 0, &usageError{fmt.Sprintf("--baseline %s: tok/s must be more than nothing", o.baseline), "whyhang PID --baseline 82.5"}
		}
		return &v, tolerance, nil
	}
	v, err := diagnose.LoadBaseline(o.baseline)
	if err != nil {
		return nil, 0, fmt.Errorf("--baseline %s: %s", o.baseline, cause(err))
	}
	return &v, tolerance, nil
}

// progress writes one line that is written over again, on a terminal; nothing
// elsewhere.
func progress(stderr io.Writer) func(string) {
	width, ok := terminal(stderr)
	if !ok {
		return func(string) {}
	}
	return func(s string) {
		r := []rune(s)
		fmt.Fprintf(stderr, "\r\x1b[K%s", string(r[:min(len(r), width-1)]))
	}
}

// tool names this build.
func tool() evidence.Tool { return evidence.Tool{Version: version, Commit: commit()} }

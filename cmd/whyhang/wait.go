package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/report"
	"github.com/whyhang/whyhang/rules/rule"
)

func waitCommand(w world, o *options, code *int) *cobra.Command {
	follow := false
	c := &cobra.Command{
		Use:   "wait PID",
		Short: "Repeat until ready, or until it cannot become ready",
		Long: `Looks at the server every few seconds, cheaply, until it is ready or can no longer
become ready, or until --timeout; then writes the report and exits with its
verdict. Meanwhile one line on standard error says how far it is: written over
again on a terminal, once a minute elsewhere and when the verdict changes.

When nothing moves, a close look keeps the evidence of that moment for the
report. The short benchmark is not run.`,
		Example: `  whyhang wait 4242 && run-benchmark
  whyhang wait 4242 --passive && echo go`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"wait wants one PID", "whyhang wait 4242"}
			}
			_, err := parsePID(args[0])
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := parsePID(args[0])
			if err != nil {
				return err
			}
			*code, err = waitFor(cmd.Context(), w, o, pid, follow)
			return err
		},
	}
	c.Flags().BoolVar(&follow, "follow-restart", false, "when the process ends, wait for one with the same command line")
	return c
}

// waitFor is `whyhang wait PID`.
func waitFor(ctx context.Context, w world, o *options, pid int, follow bool) (int, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	d, err := o.diagnosis(w, pid)
	if err != nil {
		return 0, err
	}
	d.NoBench = true
	clear := d.Progress
	d.Progress = nil // one line says it all
	j, err := diagnose.Wait(ctx, diagnose.WaitOptions{Options: d, Timeout: o.timeout, FollowRestart: follow, Tell: waitLines(w.Stderr, o.timeout)})
	clear("")
	if err != nil {
		return 0, err
	}
	if j.Verdict != rule.Ready && time.Since(j.Case.Waited.Since) >= o.timeout {
		fmt.Fprintf(w.Stderr, "whyhang: not ready after %s\n", o.timeout)
	}
	return deliver(w, o, j)
}

// longestLine is the length of a line elsewhere than on a terminal.
const longestLine = 240

// firstWord is how long whyhang may look before it says how it stands.
const firstWord = 5 * time.Second

// waitLines says how it stands: on a terminal in one line that is written over
// again, elsewhere in a line a minute, and one for each new verdict.
func waitLines(stderr io.Writer, timeout time.Duration) func(diagnose.WaitStatus) {
	_, onTerminal := terminal(stderr)
	var at time.Time
	var verdict rule.Verdict
	var note string
	return func(s diagnose.WaitStatus) {
		if s.Judgement == nil || s.Judgement.Cause == rule.TooShort && s.Waited < firstWord {
			return // two looks make a movement
		}
		if onTerminal {
			width, _ := terminal(stderr) // it may have changed
			head := clock(s.Waited) + "  "
			line := report.OneLine(s.Note, max(2, width-1-len(head)))
			if line == "" {
				line = report.StatusLine(s.Judgement, max(2, width-1-len(head)))
			}
			fmt.Fprint(stderr, "\r\x1b[K"+head+line)
			return
		}
		now := time.Now()
		if s.Judgement.Verdict == rule.Gone && s.Note != "" {
			// Which process is waited for now is said nowhere else until the end.
			if s.Note != note {
				note = s.Note
				fmt.Fprintf(stderr, "%s  waited %s of %s: %s\n", now.Format(time.RFC3339), clock(s.Waited), clock(timeout), note)
			}
			return
		}
		if now.Sub(at) < time.Minute && s.Judgement.Verdict == verdict {
			return
		}
		at, verdict = now, s.Judgement.Verdict
		fmt.Fprintf(stderr, "%s  waited %s of %s: %s\n", now.Format(time.RFC3339), clock(s.Waited), clock(timeout), report.StatusLine(s.Judgement, longestLine))
	}
}

// clock is a time as 3:07 or 1:02:03.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/report"
	"github.com/whyhang/whyhang/rules"
)

// diagnosePID is `whyhang PID`.
func diagnosePID(ctx context.Context, w world, o *options, pid int) (int, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	d, err := o.diagnosis(w, pid)
	if err != nil {
		return 0, err
	}
	j, err := diagnose.Run(ctx, d)
	d.Progress("") // clear the line
	if err != nil {
		return 0, err
	}
	return deliver(w, o, j)
}

// deliver saves the snapshot and writes the report, and gives the exit code.
func deliver(w world, o *options, j *rules.Judgement) (int, error) {
	if o.save != "" {
		if err := diagnose.Save(o.save, j.Case.Snapshot); err != nil {
			return 0, fmt.Errorf("--save %s: %s", o.save, cause(err))
		}
	}
	if err := render(w, o, report.New(j)); err != nil {
		return 0, err
	}
	if o.exitZero {
		return 0, nil
	}
	return j.ExitCode, nil
}

// render writes the report in the format and to the place asked for.
func render(w world, o *options, r *report.Report) error {
	width, isTerminal := terminal(w.Stdout)
	toFile := o.output != "" && o.output != diagnose.Standard
	if toFile {
		width, isTerminal = 0, false
	}
	var b bytes.Buffer
	var err error
	switch o.format {
	case "json":
		err = report.JSON(&b, r)
	case "markdown":
		err = report.Markdown(&b, r)
	default:
		text := report.TextOptions{Width: width}
		if coloured(o, w, isTerminal) {
			text.Palette = report.Colours()
		}
		err = report.Text(&b, r, text)
	}
	if err != nil {
		return err
	}
	if toFile {
		if err := diagnose.WriteFile(o.output, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("-o %s: %s", o.output, cause(err))
		}
		return nil
	}
	if _, err := io.Copy(w.Stdout, &b); err != nil {
		return fmt.Errorf("write the report: %s", cause(err))
	}
	return nil
}

// coloured decides for the output at hand: NO_COLOR counts when it is not
// empty (no-color.org).
func coloured(o *options, w world, isTerminal bool) bool {
	switch o.color {
	case "always":
		return true
	case "never":
		return false
	}
	if v, _ := w.Env("NO_COLOR"); v != "" {
		return false
	}
	if v, _ := w.Env("TERM"); v == "dumb" {
		return false
	}
	return isTerminal
}

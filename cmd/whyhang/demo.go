package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/demo"
	"github.com/whyhang/whyhang/rules"
)

func demoCommand(w world, o *options, code *int) *cobra.Command {
	var names []string
	for _, d := range demo.All {
		names = append(names, fmt.Sprintf("  %-10s %s", d.Name, d.Title))
	}
	return &cobra.Command{
		Use:   "demo [NAME]",
		Short: "Start a built-in process that really is deadlocked, loading or ready, and diagnose it",
		Long: `Starts a process that really is what its name says and diagnoses it as if it
were yours. With a NAME the exit code is the verdict's. Without one all are shown
in turn, and the exit code is 0 if each got the verdict it should.

` + strings.Join(names, "\n"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && demo.ByName(args[0]) == nil {
				return &usageError{fmt.Sprintf("there is no demo %q", strings.Join(args, " ")), "whyhang demo deadlock"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if len(args) == 1 {
				j, err := diagnoseDemo(cmd.Context(), w, o, demo.ByName(args[0]))
				if err != nil {
					return err
				}
				*code, err = deliver(w, o, j)
				return err
			}
			if o.output != "" || o.save != "" {
				return &usageError{"-o and --save hold one report; name one demo", "whyhang demo deadlock -o report.txt"}
			}
			return tour(cmd.Context(), w, o)
		},
	}
}

// tour shows all demos.
func tour(ctx context.Context, w world, o *options) error {
	var wrong []string
	for i := range demo.All {
		d := &demo.All[i]
		if o.format == "text" {
			fmt.Fprintf(w.Stdout, "%s$ whyhang demo %s   # %s\n\n", map[bool]string{true: "", false: "\n\n"}[i == 0], d.Name, d.Title)
		}
		j, err := diagnoseDemo(ctx, w, o, d)
		if err != nil {
			return err
		}
		if _, err := deliver(w, o, j); err != nil {
			return err
		}
		if j.Verdict != d.Verdict {
			wrong = append(wrong, d.Name)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("wrong verdict on the demo %s: please report this with the output above", strings.Join(wrong, ", "))
	}
	return nil
}

func diagnoseDemo(ctx context.Context, w world, o *options, d *demo.Demo) (*rules.Judgement, error) {
	p, err := d.Start()
	if err != nil {
		return nil, fmt.Errorf("demo %s: %w", d.Name, err)
	}
	defer p.Stop()
	options, err := o.diagnosis(w, p.PID)
	if err != nil {
		return nil, err
	}
	j, err := diagnose.Run(ctx, options)
	options.Progress("")
	return j, err
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/whyhang/whyhang/diagnose"
)

func replayCommand(w world, o *options, code *int) *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Judge a saved snapshot again and render it",
		Long: `Judges a snapshot that --save wrote, on any machine, without the server: the
verdict is the same. --strict and --baseline apply anew; nothing that the
snapshot names is opened.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"replay wants one snapshot file", "whyhang replay snapshot.json.gz"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s, err := diagnose.Load(args[0])
			if err != nil {
				return fmt.Errorf("%s: %s", args[0], cause(err))
			}
			baseline, tolerance, err := o.comparison()
			if err != nil {
				return err
			}
			*code, err = deliver(w, o, diagnose.Replay(s, diagnose.ReplayOptions{
				Strict: o.strict, BaselineTokS: baseline, TolerancePct: tolerance}))
			return err
		},
	}
}

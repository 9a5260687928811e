package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func waitCommand(_ world, o *options, _ *int) *cobra.Command {
	return &cobra.Command{
		Use:   "wait PID",
		Short: "Repeat until ready, or until it cannot become ready (not in this version)",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"wait wants one PID", "whyhang wait 4242"}
			}
			_, err := parsePID(args[0])
			return err
		},
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return errors.New("wait is not in this version; until then: while whyhang PID --no-bench; [ $? = 3 ]; do sleep 10; done")
		},
	}
}

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

func explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "All rules, or what one rule looks for, why, and what would make it wrong",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &usageError{"explain wants one rule", "whyhang explain lock-cycle"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				explainAll(cmd.OutOrStdout())
				return nil
			}
			if strings.EqualFold(args[0], "exit") {
				fmt.Fprintln(cmd.OutOrStdout(), exitTable)
				return nil
			}
			r := rules.ByID(rule.ID(args[0]))
			if r == nil {
				return &usageError{fmt.Sprintf("there is no rule %q", args[0]), "whyhang explain"}
			}
			explain(cmd.OutOrStdout(), r)
			return nil
		},
	}
}

// explainAll is the table of all rules.
func explainAll(out io.Writer) {
	for _, r := range rules.All() {
		verdict := string(r.Verdict)
		if verdict == "" {
			verdict = "(warning)"
		}
		fmt.Fprintf(out, "%-20s %-13s %s\n", r.ID, verdict, r.Title)
	}
	fmt.Fprintln(out, "\nwhyhang explain RULE says what one looks for; whyhang explain EXIT lists the exit codes.")
}

// explain is one rule.
func explain(out io.Writer, r *rule.Rule) {
	fmt.Fprintf(out, "%s\n\n%s.\n", r.ID, r.Title)
	if r.Verdict != "" {
		fmt.Fprintf(out, "Speaks for: %s (exit code %d)\n", r.Verdict, rule.ExitCode(r.Verdict, ""))
	} else {
		fmt.Fprintln(out, "Only warns.")
	}
	fmt.Fprintf(out, "\n%s\n", r.Doc)
	if len(r.Needs) > 0 {
		var needs []string
		for _, n := range r.Needs {
			needs = append(needs, string(n))
		}
		fmt.Fprintf(out, "\nNeeds: %s. Without them it is \"not evaluated\", which says nothing.\n", strings.Join(needs, ", "))
	}
	if len(r.Suppresses) > 0 {
		var ids []string
		for _, id := range r.Suppresses {
			ids = append(ids, string(id))
		}
		fmt.Fprintf(out, "\nIts consequences are not shown beside it: %s.\n", strings.Join(ids, ", "))
	}
}

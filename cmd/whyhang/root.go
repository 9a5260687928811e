package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/whyhang/whyhang/rules/rule"
)

// run is the whole program: its exit code is the process's.
func run(ctx context.Context, args []string, w world) int {
	code := 0
	o := &options{}
	root := rootCommand(w, o, &code)
	root.SetArgs(args)
	out := &checked{w: w.Stdout}
	root.SetOut(out)
	root.SetErr(w.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("write to standard output: %s", cause(out.err))
	}
	if err == nil && ctx.Err() != nil && code == 0 && !o.exitZero {
		err = errors.New("interrupted before everything was looked at")
	}
	if err != nil {
		fmt.Fprintln(w.Stderr, "whyhang: "+strings.TrimSuffix(err.Error(), "\n"))
		if usage, ok := errors.AsType[*usageError](err); ok {
			if usage.try != "" {
				fmt.Fprintln(w.Stderr, "try: "+usage.try)
			}
			return rule.ExitUsage
		}
		return rule.ExitFailed
	}
	return code
}

const longHelp = `whyhang says of an LLM inference server whether it is deadlocked, still loading
or ready, and why. It only looks: no ptrace, no signals, no writes to the
target; HTTP goes to the server's own socket alone.

The verdict is on standard output, progress on standard error, and the exit code
says the verdict to scripts:

` + exitTable

func rootCommand(w world, o *options, code *int) *cobra.Command {
	root := &cobra.Command{
		Use:           "whyhang PID",
		Short:         "Is this inference server deadlocked, loading or ready, and why?",
		Long:          longHelp,
		Args:          cobra.ArbitraryArgs,
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return listServers(cmd.Context(), w, o)
			case 1:
				pid, err := parsePID(args[0])
				if err != nil {
					return err
				}
				*code, err = diagnosePID(cmd.Context(), w, o, pid)
				return err
			}
			return &usageError{fmt.Sprintf("one PID at a time, not %d", len(args)), "whyhang " + args[0]}
		},
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return o.checkEmpty() }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SetVersionTemplate("{{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	o.bind(root.PersistentFlags())
	root.AddCommand(waitCommand(w, o, code), replayCommand(w, o, code), explainCommand(), demoCommand(w, o, code), versionCommand(w))
	// "whyhang waitt 42" is a typo of a command, not two PIDs.
	root.SuggestionsMinimumDistance = 2
	return root
}

// negative is a number where a flag was expected.
var negative = regexp.MustCompile(`in (-\d+)$`)

// flagError says in plain words what is wrong with a flag.
func flagError(err error) error {
	says := err.Error()
	if m := negative.FindStringSubmatch(says); m != nil {
		return &usageError{m[1] + " is no PID", "pgrep -af 'sglang|vllm|llama'"}
	}
	if m := missingUnit.FindStringSubmatch(says); m != nil {
		return &usageError{fmt.Sprintf("%s %s: a time has a unit", m[2], m[1]), fmt.Sprintf("whyhang PID %s %ss", m[2], m[1])}
	}
	return &usageError{says, "whyhang --help"}
}

// missingUnit is pflag's word about "--window 5".
var missingUnit = regexp.MustCompile(`invalid argument "([0-9.]+)" for "(--[a-z-]+)" flag: time: missing unit`)

// parsePID reads a process ID.
func parsePID(s string) (int, error) {
	pid, err := strconv.Atoi(s)
	switch {
	case strings.HasPrefix(s, ":") || strings.HasPrefix(s, "container:"):
		return 0, fmt.Errorf("finding a server by %s is not in this version; give its PID", strings.SplitN(s, ":", 2)[0]+":…")
	case err != nil:
		return 0, &usageError{fmt.Sprintf("%q is no PID", s), "pgrep -af 'sglang|vllm|llama'"}
	case pid <= 0:
		return 0, &usageError{fmt.Sprintf("%d is no PID", pid), "pgrep -af 'sglang|vllm|llama'"}
	}
	return pid, nil
}

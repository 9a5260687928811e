package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is stamped by the build (-ldflags "-X main.version=…").
var version = "0.1.0-dev"

// commit is the commit the build was made from, as far as Go knows it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}

// versionLine says what this build is.
func versionLine() string {
	s := "whyhang " + version
	if c := commit(); c != "" {
		s += " (" + c[:min(12, len(c))] + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", s, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand(w world) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{"version takes no arguments", "whyhang version"}
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(w.Stdout, versionLine())
			return err
		},
	}
}

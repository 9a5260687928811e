// Command whyhang says of an LLM inference server whether it is deadlocked,
// loading or ready, and why.
//
// This package holds one file per subcommand and the texts that speak to the
// operator; nothing else.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/demo"
	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/rules/rule"
)

func init() {
	// The main thread stays the main goroutine's: /proc/self is its thread's
	// view, and a goroutine that enters another network namespace to dial must
	// never run on it.
	runtime.LockOSThread()
}

func main() {
	probes.ChildMain(diagnose.Children())
	demo.ChildMain()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			// Go's own exit code for this is 2, which is wrong usage here.
			fmt.Fprintf(os.Stderr, "whyhang: failed, please report this: %v\n%s", p, debug.Stack())
			os.Exit(rule.ExitFailed)
		}
	}()
	os.Exit(run(ctx, os.Args[1:], world{Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}))
}

// Command whyhang says of an LLM inference server whether it is deadlocked,
// loading or ready, and why.
//
// This package holds one file per subcommand and the texts that speak to the
// operator; nothing else.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/whyhang/whyhang/diagnose"
	"github.com/whyhang/whyhang/diagnose/demo"
	"github.com/whyhang/whyhang/probes"
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
	os.Exit(run(ctx, os.Args[1:], world{Stdout: os.Stdout, Stderr: os.Stderr, Env: os.LookupEnv}))
}

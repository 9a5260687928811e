package probes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
)

// childArgument is the hidden first argument that makes an executable be one
// of its own children.
const childArgument = "__probe"

// childMark is the environment variable that marks a child.
const childMark = "WHYHANG_CHILD"

// answerFD is the descriptor a child answers on.
const answerFD = 3

// Handler answers one question in a child. It calls stage before anything
// that may hang, so that the parent can say where it hung.
type Handler func(ctx context.Context, question json.RawMessage, stage func(string)) (any, error)

// ChildMain makes the process one of its own children and does not return, if
// it was started as one by StartChild; otherwise it does nothing. It has to be
// called first thing in main, and in TestMain of packages that start children.
// handlers maps a child's name to what makes its handler: a handler may keep
// state between questions.
func ChildMain(handlers map[string]func() Handler) {
	if len(os.Args) != 3 || os.Args[1] != childArgument {
		return
	}
	// The main thread is the one that /proc shows as the process: what hangs
	// should hang there.
	runtime.LockOSThread()
	start, ok := handlers[os.Args[2]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no child called %q\n", os.Args[2])
		os.Exit(2)
	}
	// A crash of a driver's library is expected here; a core file is not.
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
	os.Exit(serve(start(), os.Stdin, os.NewFile(answerFD, "answers")))
}

// serve answers questions until the input ends. The input ends when the parent
// ends, however it ends, so no child outlives it unless it hangs.
func serve(handle Handler, in io.Reader, out io.Writer) int {
	send := func(m message) {
		b, err := json.Marshal(m)
		if err != nil {
			b, _ = json.Marshal(message{Error: err.Error()})
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			os.Exit(1) // nobody listens any more
		}
	}
	questions := make(chan json.RawMessage)
	go func() {
		lines := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				// The parent is gone or done: do not finish what nobody wants.
				os.Exit(0)
			}
			questions <- line
		}
	}()
	for q := range questions {
		answer, err := handle(context.Background(), q, func(s string) { send(message{Stage: s}) })
		if err != nil {
			send(message{Error: err.Error()})
			continue
		}
		b, err := json.Marshal(answer)
		if err != nil {
			send(message{Error: err.Error()})
			continue
		}
		send(message{Answer: b})
	}
	return 0
}

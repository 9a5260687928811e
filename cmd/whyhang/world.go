package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// world is what a run may talk to; tests give another one.
type world struct {
	Stdout, Stderr io.Writer
	Env            func(string) (string, bool)
}

// checked remembers that a write failed, for output whose writers do not look.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// terminal tells whether a writer is one, and how wide it is.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !isatty.IsTerminal(f.Fd()) {
		return 0, false
	}
	if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		return int(size.Col), true
	}
	return 80, true
}

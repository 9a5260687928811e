package diagnose

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Standard names standard input or output where a file is wanted.
const Standard = "-"

// openInput opens a file that the operator named, to be read whole; "-" is
// standard input. It must not wait: opening a FIFO that nobody writes to would,
// and no signal could end it.
func openInput(path string) (io.ReadCloser, error) {
	if path == Standard || path == "/dev/stdin" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New(kindOf(st.Mode()) + "; a regular file is wanted, or - for standard input")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "is a directory"
	case m&fs.ModeNamedPipe != 0:
		return "is a pipe"
	case m&fs.ModeSocket != 0:
		return "is a socket"
	}
	return "is a device"
}

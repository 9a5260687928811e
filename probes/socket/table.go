package socket

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// maxRows bounds one table. Listeners come first in it.
	maxRows = 200_000
	// maxLine is far more than the longest line of these tables.
	maxLine = 4096
)

// table is what was read of one file.
type table struct {
	odd bool // there were lines that are no rows
	cut bool // there were more than maxRows
}

// bothTables are the TCP tables of a namespace.
var bothTables = []string{"tcp", "tcp6"}

// eachRow calls f for every row of the named tables but those in TIME_WAIT,
// which belong to nobody any more. A kernel without IPv6 has no tcp6.
//
// The kernel walks its whole hash of connections for each table, however few
// are in it: some 5 ms for 260,000 buckets.
func eachRow(dir string, names []string, f func(*row)) (table, error) {
	var t table
	var r row // one for all: f may not keep it
	for _, name := range names {
		got, err := eachLine(filepath.Join(dir, name), func(line []byte) bool {
			var ok bool
			if r, ok = parseRow(line); ok && r.state != stateTimeWait {
				f(&r)
			}
			return ok
		})
		t.odd, t.cut = t.odd || got.odd, t.cut || got.cut
		if err != nil && !(name == "tcp6" && errors.Is(err, fs.ErrNotExist)) {
			return t, err
		}
	}
	return t, nil
}

// eachUnixRow calls f for every row of DIR/unix.
func eachUnixRow(dir string, f func(*unixRow)) error {
	_, err := eachLine(filepath.Join(dir, "unix"), func(line []byte) bool {
		r, ok := parseUnixRow(line)
		if ok {
			f(&r)
		}
		return ok
	})
	return err
}

// eachLine calls f for every line but the heading; f says whether it knew the
// line.
func eachLine(path string, f func([]byte) bool) (table, error) {
	file, err := os.Open(path)
	if err != nil {
		return table{}, err
	}
	defer file.Close()
	return readLines(file, f)
}

func readLines(from io.Reader, f func([]byte) bool) (t table, err error) {
	in := bufio.NewReaderSize(from, maxLine)
	heading, long := true, false
	for n := 0; ; {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long, t.odd = true, true // skip the rest of it, too
			continue
		case long || heading:
			long, heading = false, false
		case len(line) > 0:
			if n++; n > maxRows {
				t.cut = true
				return t, nil
			}
			if line[len(line)-1] == '\n' {
				line = line[:len(line)-1]
			}
			if !f(line) {
				t.odd = true
			}
		}
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return t, err
		}
	}
}

package serverlog

import (
	"bytes"
	"io"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// lastBytes is how much of the end of a log is looked at as a whole.
const lastBytes = 64 << 10

// tailLines is how many last lines are kept.
const tailLines = 20

// ending is the end of a log as it stands.
type ending struct {
	// lines are the last whole lines and, if partial, one without newline at
	// the end. The first may be cut at its front.
	lines   [][]byte
	partial bool
	// whole is the offset behind the last newline; -1 if none is near.
	whole int64
	size  int64
}

// readEnding reads the last bytes of the first size bytes.
func readEnding(r io.ReaderAt, size, most int64) (ending, error) {
	e := ending{size: size, whole: -1}
	from := max(0, size-most)
	buf := make([]byte, size-from)
	n, err := r.ReadAt(buf, from)
	if err != nil && err != io.EOF {
		return e, err
	}
	buf = buf[:n]
	if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
		e.whole = from + int64(i) + 1
		e.partial = i+1 < len(buf)
	} else {
		e.partial = len(buf) > 0
		if from == 0 {
			e.whole = 0
		}
	}
	e.lines = bytes.Split(bytes.TrimSuffix(buf, newline), newline)
	if last := len(e.lines) - 1; onlyNUL(e.lines[last]) && (e.partial || len(buf) == 0) {
		e.lines = e.lines[:last] // the end of a hole is no line
		e.partial = false
	}
	return e, nil
}

// endInto writes the end of the log that was read into its evidence. A time
// stamp counts only if it stands below the last launch.
func (res *result) endInto(log *evidence.Log, c *catalogue, r io.ReaderAt) {
	if end, err := readEnding(r, res.size, lastBytes); err == nil {
		log.Tail = end.tail(c, res.lines)
	}
	if end, err := readEnding(r, res.size, min(lastBytes, res.size-res.state.launchAt)); err == nil {
		log.Last = end.lastTime(c)
	}
}

// lastPiece is what a terminal would show of a line: its last piece that is
// not empty.
func lastPiece(line []byte) []byte {
	var last []byte
	pieces(line, func(p []byte) {
		if len(bytes.TrimSpace(stripped(p))) > 0 {
			last = p
		}
	})
	return last
}

// bar is the last piece of the line that has no newline yet, nil for none.
func (e *ending) bar() []byte {
	if !e.partial || len(e.lines) == 0 {
		return nil
	}
	return lastPiece(e.lines[len(e.lines)-1])
}

// tail are the last lines that are not empty; total is the number of lines in
// the log.
func (e *ending) tail(c *catalogue, total int64) []evidence.Line {
	var tail []evidence.Line
	keys := e.keyLines()
	for i, number := len(e.lines)-1, total; i >= 0 && len(tail) < tailLines; i, number = i-1, number-1 {
		p := lastPiece(e.lines[i])
		if p == nil || number < 1 {
			continue
		}
		tail = append(tail, evidence.Line{Number: number, At: c.timeBefore(lineHead(p), ""), Text: e.cleanLine(keys, i, p)})
	}
	slices.Reverse(tail)
	return tail
}

// lastTime is the last time stamp in the last lines, nil for none.
func (e *ending) lastTime(c *catalogue) *time.Time {
	for _, line := range slices.Backward(e.lines) {
		var last *time.Time
		pieces(line, func(p []byte) {
			if t := c.timeBefore(lineHead(p), ""); t != nil {
				last = t
			}
		})
		if last != nil {
			return last
		}
	}
	return nil
}

// lineHead is the part of a piece in which a line names its time.
func lineHead(p []byte) []byte {
	return stripped(p[:min(len(p), lineContext)])
}

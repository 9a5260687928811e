package serverlog

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// traceback is how CPython begins to print an exception.
const traceback = "Traceback (most recent call last)"

// How many unknown errors are kept: the first name the cause, the last what it
// came to.
const (
	keepFirst = 20
	keepLast  = 5
)

// maxTrace is how many lines a traceback may have.
const maxTrace = 300

// failures are strings that make a line look like an error, with what the line
// must match as well.
var failures = []struct {
	literal string
	confirm *regexp.Regexp
}{
	{literal: "CUDA error"},
	{literal: "Fatal Python error: "},
	{literal: "terminate called after throwing"},
	{literal: "Segmentation fault"},
	// argparse, in every Python server.
	{literal: "error: unrecognized arguments"},
	{literal: "error: argument "},
	{literal: "error: the following arguments are required"},
	// glog lines of PyTorch: letter E, month and day, time, file.
	{literal: "ProcessGroupNCCL.cpp:", confirm: glogError},
	{literal: "ProcessGroupGloo.cpp:", confirm: glogError},
	{literal: "TCPStore.cpp:", confirm: glogError},
	{literal: "c10/util/", confirm: glogError},
	// vLLM's level, in the line format of its workers.
	{literal: ") ERROR ", confirm: regexp.MustCompile(`\) ERROR \d\d-\d\d `)},
}

var glogError = regexp.MustCompile(`\[[EF]\d{4} \d\d:\d\d:\d\d`)

// noise are lines with an exception in them that mean no harm: optional parts
// that are missing, fallbacks, and clean-up at exit.
var noise = [][]byte{
	[]byte("Ignore import error"), []byte("Failed to import"), []byte("FutureWarning"),
	[]byte("DeprecationWarning"), []byte("UserWarning"), []byte("leaked shared_memory"), []byte("leaked semaphore"),
	[]byte("Custom allreduce"), []byte("Failed to load NCCL library"), []byte("pynvml package is deprecated"),
}

// exception is the last line of a traceback: the class, and what it says.
var exception = regexp.MustCompile(`^(?:(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|\w*(?:Error|Exception|Interrupt|Exit|Warning|Empty|Full|Timeout))(?::\s|:?$)`)

func isNoise(piece []byte) bool {
	return slices.ContainsFunc(noise, func(n []byte) bool { return bytes.Contains(piece, n) })
}

// errorLines are the unknown errors of a log.
type errorLines struct {
	first, last []errorLine
}

type errorLine struct {
	offset int64
	evidence.Line
}

func (e *errorLines) add(offset int64, l evidence.Line) {
	if len(e.first) < keepFirst {
		e.first = append(e.first, errorLine{offset, l})
		return
	}
	if len(e.last) == keepLast {
		e.last = slices.Delete(e.last, 0, 1)
	}
	e.last = append(e.last, errorLine{offset, l})
}

// dropBefore forgets what stands before an offset. A traceback is read ahead of
// the rest, so there may be something behind it already.
func (e *errorLines) dropBefore(offset int64) {
	all := slices.Concat(e.first, e.last)
	*e = errorLines{}
	for _, l := range all {
		if l.offset >= offset {
			e.add(l.offset, l.Line)
		}
	}
}

func (e *errorLines) lines() []evidence.Line {
	all := slices.Concat(e.first, e.last)
	slices.SortStableFunc(all, func(a, b errorLine) int { return cmp.Compare(a.offset, b.offset) })
	var lines []evidence.Line
	for _, l := range all {
		lines = append(lines, l.Line)
	}
	return lines
}

func (e *errorLines) clone() errorLines {
	return errorLines{first: slices.Clone(e.first), last: slices.Clone(e.last)}
}

// trace is a traceback whose last line has not come yet.
type trace struct {
	// prefix is the key of what stands before "Traceback" on its line. Engines
	// that prefix every line repeat it; the others go on without.
	prefix string
	column int
	rank   string
	left   int // lines
	noise  bool
}

// follow reads on in a traceback from a position of the region, which is in that
// line, until the traceback's last line or the end of the region. It returns where it got to.
func (st *state) follow(c *catalogue, r *region, pos int, line int64) int {
	t, buf, cut := st.trace, r.buf, r.cut
	for pos < cut {
		end := pieceEnd(buf, pos, cut)
		if end == cut && cut < len(buf) {
			return pos // in the middle of an endless line
		}
		piece := stripped(buf[pos:min(end, pos+maxPiece)])
		rest := piece
		if len(piece) > t.column && string(rankKey(nil, piece[:t.column])) == t.prefix {
			rest = piece[t.column:]
		}
		if exception.Match(rest) {
			if !t.noise && !isNoise(rest) && len(c.match(piece)) == 0 {
				st.errors.add(r.base+int64(pos), evidence.Line{Number: line, At: c.timeBefore(piece, ""), Rank: t.rank, Text: clean(rest, 0)})
			}
			st.trace = nil
			return end
		}
		pos = end + 1
		if end < cut && buf[end] != '\n' {
			continue
		}
		line++
		if t.left--; t.left == 0 {
			st.trace = nil
			break
		}
	}
	return min(pos, cut)
}

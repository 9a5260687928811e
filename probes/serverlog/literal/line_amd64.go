package literal

import "golang.org/x/sys/cpu"

// hasShapes: the processor hashes a line faster than it is searched.
var hasShapes = cpu.X86.HasAVX2 && cpu.X86.HasAES

// nextLines puts into lines how long the lines are that begin at a position of
// text, above 0, newlines included, and the keys of their shapes. It says how
// many lines it found. A line that ends among the last vector bytes of the text
// may not be found.
func nextLines(text []byte, at int, lines []line) int {
	if len(text)-at < vector {
		return 0
	}
	return hashLines(&text[at], len(text)-at, &secret, &lines[0], len(lines))
}

// hashLines hashes up to so many lines from p on, one byte before which may be
// read, in a text that ends n bytes behind p.
//
//go:noescape
func hashLines(p *byte, n int, secret *[12]uint64, lines *line, most int) int

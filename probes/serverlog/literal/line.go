package literal

import (
	"math/rand/v2"
	"slices"
)

// Lines that differ only in their numbers have one shape. A digit is part of
// the shape, and the same in all its lines, if what stands before it is a
// letter, "_" or "=", and whatever else is above "<" in ASCII: TP0 and TP1 have
// two shapes, 17:06:05 and 17:06:06 one.

// maxLine is the length of lines that have shapes, in bytes, newline included.
// Longer ones are rare, and searching them costs no more a byte.
const maxLine = 1024

// vector is the number of bytes that nextLines reads at once.
const vector = 32

// key is a hash of a line's shape. Its secret is drawn anew in each process: two
// shapes have the same key with a probability of 2^-128, and nobody can write a
// log in which they have.
type key [2]uint64

// secret is what the hash begins with, and the keys of its two rounds.
var secret = func() (s [12]uint64) {
	for i := range s {
		s[i] = rand.Uint64() // ChaCha8, seeded by the system
	}
	return s
}()

// line is how long a line is, and the key of its shape. Assembly knows its
// layout.
type line struct {
	n   int
	key key
}

func isDigit(b byte) bool { return b-'0' < 10 }

// keeps says whether a digit that stands behind this byte is part of the shape.
func keeps(before byte) bool { return before >= '=' }

// shape is what is known of all lines of a shape.
type shape struct {
	hits []Hit
	// unsure: another line of the shape may hold other strings.
	unsure bool
}

// zeroed appends text with zeros for digits.
func zeroed(dst, text []byte) []byte {
	for _, b := range text {
		if isDigit(b) {
			b = '0'
		}
		dst = append(dst, b)
	}
	return dst
}

// free says whether in another line of the shape a digit of line[from:to] may
// be another one. There is a byte before the line.
func free(line []byte, from, to int, before byte) bool {
	if from > 0 {
		before = line[from-1]
	}
	for _, b := range line[from:to] {
		if isDigit(b) && !keeps(before) {
			return true
		}
		before = b
	}
	return false
}

// newShape is the shape of a line that holds these hits, with notes for those
// before which all numbers are free or kept as a whole, as keep says they
// must be.
func newShape(line []byte, hits []Hit, keep func(line []byte, at int) bool) *shape {
	s := &shape{hits: slices.Clone(hits)}
	notes := make([]Note, len(hits))
	at := 0
	for i := range s.hits {
		for ; at < s.hits[i].Start; at++ {
			if !isDigit(line[at]) {
				continue
			}
			from := at
			for at < s.hits[i].Start && isDigit(line[at]) {
				at++
			}
			if kept := at == from+1 && from > 0 && keeps(line[from-1]); keep(line, from) && !kept {
				return s
			}
		}
		s.hits[i].Note = &notes[i]
	}
	return s
}

package kernel

import (
	"bytes"

	"github.com/whyhang/whyhang/probes/evidence"
)

// parseStall reads a file of pressure stall information:
//
//	some avg10=0.00 avg60=0.32 avg300=0.45 total=3552082201
//	full avg10=0.00 avg60=0.00 avg300=0.00 total=0
//
// The totals are microseconds. Nil if there is no "some" line.
func parseStall(b []byte) *evidence.Stall {
	var some, full *uint64
	for line := range bytes.Lines(b) {
		kind, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		i := bytes.Index(rest, []byte("total="))
		if i < 0 {
			continue
		}
		word, _, _ := bytes.Cut(rest[i+len("total="):], []byte(" "))
		v, ok := number(word)
		if !ok {
			continue
		}
		switch string(kind) {
		case "some":
			some = &v
		case "full":
			full = &v
		}
	}
	if some == nil {
		return nil
	}
	return &evidence.Stall{SomeUS: *some, FullUS: full}
}

// pressure reads three such files; nil if none can be read. A kernel without
// PSI has no such files, one with psi=0 answers EOPNOTSUPP.
func pressure(file func(resource string) string) *evidence.Pressure {
	read := func(resource string) *evidence.Stall {
		b, err := readSmall(file(resource))
		if err != nil {
			return nil
		}
		return parseStall(b)
	}
	p := evidence.Pressure{CPU: read("cpu"), Memory: read("memory"), IO: read("io")}
	if p == (evidence.Pressure{}) {
		return nil
	}
	return &p
}

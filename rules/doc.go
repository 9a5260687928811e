// Package rules judges a snapshot: all.go lists every rule in order, judge.go
// turns their findings into one verdict by precedence.
//
// Rules only judge. Nothing below rules/ may do I/O, read the clock, use cgo,
// or import a probe: everything comes from the snapshot, so a saved one is
// judged again with the same result.
package rules

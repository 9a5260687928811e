// Package facts computes, once per snapshot, what many rules ask for: the
// engine, the phases, what moves, how far the weights are, who waits for whom.
//
// A fact is named and has a file of its own. Facts only restate the evidence;
// they may not judge, do I/O, read the clock or use cgo.
package facts

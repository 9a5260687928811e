// Package engines knows the inference engines: how to recognise one, what its
// log lines mean, which processes it needs, which flags distort a benchmark.
//
// One engine is one file, and a second one with its log lines. An engine is
// data, plus functions of the evidence alone: no I/O, no clock, no cgo.
package engines

// Package fakeserver is an HTTP server on 127.0.0.1 that does what a script
// says, for tests and for the demo: it sends given bytes, waits, stalls,
// closes and resets, or plays a small model with a given speed (Model).
//
// It may listen on loopback only and must not be used by a diagnosis.
package fakeserver

// Package counters reads what an inference engine counts of itself: requests that
// run and wait, tokens made. It sends GET requests to the server's own door, each
// with a deadline, and keeps numbers alone.
//
// Counters can lie: a front end goes on to serve those of an engine that is dead,
// and an engine that reports at the end of a step never reports the first request
// it gets stuck in. So this package observes and does not judge, and nothing in it
// may be taken for health.
//
// It must not ask for anything that costs the engine work (SGLang's
// /health_generate), write, follow redirects or talk to another address.
package counters

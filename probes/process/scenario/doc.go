// Package scenario builds and starts the programs of testdata/scenarios for
// tests: real processes that really block, crawl, spin or serve.
//
// It is for tests only and may not judge anything.
package scenario

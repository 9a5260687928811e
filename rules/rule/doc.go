// Package rule says what a rule is, what it finds, and what it may see.
//
// A rule is one literal with an ID, a doc, its needs and a pure function of
// the Case. It may not do I/O, read the clock, or keep state.
package rule

// Package unresponsive holds the rules that speak for the verdict "unresponsive", one per
// file. A rule may not do I/O, read the clock or keep state.
package unresponsive

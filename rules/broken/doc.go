// Package broken holds the rules that speak for the verdict "broken", one per
// file. A rule may not do I/O, read the clock or keep state.
package broken

// Package warning holds the rules that speak for no verdict and only warn: what
// would mislead the next step, such as a benchmark. A rule may not do I/O, read
// the clock or keep state.
package warning

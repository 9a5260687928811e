// Package probes says what a probe is: something that looks at one part of a
// server, has a deadline, is abandoned past it, and whose failure is itself
// evidence.
//
// Probes only observe. They may not judge (no rules), may not print, may not
// signal, trace or write to the target, and may not wait without a limit.
//
// Two ways of not waiting:
//
//   - Run: a goroutine that is left behind when its time is over. Enough for
//     /proc, whose waits end when whyhang is killed.
//   - Child: a child process of ourselves that is left behind. Needed for
//     everything that can sleep uninterruptibly in the kernel (the NVIDIA
//     driver, stat and read on a dead mount): a thread in D state would keep
//     whyhang itself from ending. Asker starts one, leaves it behind when it
//     hangs, and starts another.
package probes

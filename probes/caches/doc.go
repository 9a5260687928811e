// Package caches looks at the directories in which libraries keep what they
// build and download: compiled kernels, tuned parameters, models of a hub. It
// finds them from the environment of each process, sums up what is in them, and
// lists lock files and unfinished downloads.
//
// A home directory may lie on a server that does not answer, and a directory
// of it may then hang its reader for ever. Everything that touches a directory
// runs in a child of ourselves and is bounded in depth, entries and time.
//
// It may not write, follow a link out of the process's root directory, open a
// file, or say what any of it means.
package caches

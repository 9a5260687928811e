// Package serverlog finds the log of a server, reads all of it, and follows
// it while whyhang watches.
//
// The log is found through the server's own file descriptors. It is read from
// its first to its last byte, as the one line that decides is rarely among the
// last eighty: known lines are searched for with a filter of fixed strings
// (package literal) and confirmed with a regular expression each. What known
// lines look like is handed in as data; this package knows no engine.
//
// Files of the target are opened and read in a child process of whyhang only:
// they may lie on a mount that no longer answers.
//
// The package may not judge what it reads, may not import rules, and may not
// open, stat or read a file of the target in the main process. Text of the
// target leaves it without control characters, secrets and prompts, and cut to
// a length.
//
// From the way of a byte: source_fd.go and find.go find files; child.go is the
// child's end of the questions of reader.go; open.go opens; scan.go reads,
// region.go finds known lines, state.go and mark.go keep them, counted.go and
// recent.go make short work of those that come again and again, series.go keeps
// the numbers in them; logfile.go holds a log in the child, follow.go follows
// it with the tail library, novelty.go tells new content from repetition.
package serverlog

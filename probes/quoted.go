package probes

import "strings"

// Quoted is s as one word of a POSIX shell, for hints that people paste.
func Quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

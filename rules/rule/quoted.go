package rule

import "strings"

// plain are the characters that no shell takes for anything else.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@"

// Quoted is s as one word of a POSIX shell, for commands that people paste.
func Quoted(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

package rule

import "fmt"

// FromLine is the command that shows a log from a line on. at is where the
// line stands in the snapshot: a server may have more logs than one.
func FromLine(c *Case, at []any, line int64) string {
	path := "LOG"
	if len(at) > 1 && at[0] == "logs" {
		if i, ok := at[1].(int); ok && i < len(c.Logs) {
			path = Quoted(c.Logs[i].Path)
		}
	}
	return fmt.Sprintf("sed -n '%d,+40p' %s", line, path)
}

package rule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cite is the address of a piece of evidence: a JSON pointer (RFC 6901) into
// the snapshot, the value as it was read, and what it says.
type Cite struct {
	At    string `json:"at"`
	Value string `json:"value"`
	Says  string `json:"says"`
}

// Cite cites the value at a path (JSON names and indexes) of the snapshot. The
// value is looked up, so that a citation cannot misquote.
func (c *Case) Cite(says string, path ...any) Cite {
	return Cite{At: Pointer(path...), Value: text(Lookup(c.Snapshot, path)), Says: says}
}

// Pointer joins path elements (strings and ints) to a JSON pointer.
func Pointer(path ...any) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		s := fmt.Sprint(p)
		s = strings.ReplaceAll(s, "~", "~0")
		b.WriteString(strings.ReplaceAll(s, "/", "~1"))
	}
	return b.String()
}

// text writes a value as JSON would, without quotes.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case time.Time:
		return v.Format(time.RFC3339Nano) // as JSON has it
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

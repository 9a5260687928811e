package serverlog

import "github.com/whyhang/whyhang/probes/redact"

// redactText removes secrets from text of the target before it is kept.
func redactText(s string) string { return redact.String(s) }

// keyLine takes the place of a line that is part of a private key.
const keyLine = "[redacted]"

// keyLines says which of the last lines are part of a private key: each line
// alone does not tell. A line is looked at as a terminal would show it.
func (e *ending) keyLines() []bool {
	lines := make([]string, len(e.lines))
	for i, line := range e.lines {
		p := lastPiece(line)
		lines[i] = string(stripped(p[:min(len(p), maxSafe)]))
	}
	return redact.KeyLines(lines)
}

// cleanLine is clean for line i of the ending, of which p is the last piece.
func (e *ending) cleanLine(keys []bool, i int, p []byte) string {
	if keys[i] {
		return keyLine
	}
	return clean(p, 0)
}

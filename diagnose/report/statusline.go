package report

import (
	"strings"

	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

// maxStatus is the longest status line, in characters.
const maxStatus = 300

// StatusLine is how a server stands, in one line: for whoever waits for it.
func StatusLine(j *rules.Judgement) string {
	says := j.Sentence
	if j.Verdict == rule.Loading && j.Carried != nil && j.Carried.Phase != nil {
		says = strings.TrimPrefix(phaseLine(phase(j.Carried.Phase)), "phase ")
	}
	return OneLine(Clean(string(j.Verdict)+" ("+string(j.Cause)+"): "+says), maxStatus)
}

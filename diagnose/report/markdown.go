package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/whyhang/whyhang/rules/rule"
)

// maxMarkdownLines is the most a ticket wants to hold.
const maxMarkdownLines = 200

// Markdown writes the report for tickets and chats: verdict, sentence, facts
// and next steps are visible, the evidence is folded. Whatever came from the
// target stands in a fenced block that it cannot close, or is escaped.
func Markdown(w io.Writer, r *Report) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	head := fmt.Sprintf("## whyhang: %s (%s", strings.ToUpper(string(r.Verdict)), r.Cause)
	if r.Verdict != rule.Unknown {
		head += ", " + r.Strength.String()
	}
	line("%s)", head)
	line("")
	line("%s", escaped(r.Sentence))
	line("")
	fence(&b, "", visible(r))
	for _, w := range r.Warnings {
		text := w.Says
		if w.Detail != "" {
			text = w.Detail + ": " + text
		}
		if w.Effect != "" {
			text += " — " + w.Effect
		}
		line("")
		line("**Warning:** %s", escaped(text))
	}
	if len(r.Next) > 0 {
		line("")
		line("**Next**")
		for _, s := range r.Next {
			line("")
			line("- %s", escaped(s.Do))
			if s.Command != "" {
				line("")
				fence(&b, "sh", []string{s.Command})
			}
		}
	}
	t := &texter{width: 110}
	t.evidence(r)
	folded := strings.Split(strings.Trim(t.b.String(), "\n"), "\n")
	room := maxMarkdownLines - strings.Count(b.String(), "\n") - 9
	if room < 1 {
		room = 1
	}
	if len(folded) > room {
		folded = append(folded[:room-1:room-1], fmt.Sprintf("… %d more lines: see the text or JSON report", len(folded)-room+1))
	}
	line("")
	line("<details><summary>Evidence</summary>")
	line("")
	fence(&b, "", folded)
	line("")
	line("</details>")
	line("")
	line("%s", escaped(fmt.Sprintf("whyhang %s, %s, exit code %d", r.Tool.Version, r.Taken.Format("2006-01-02 15:04:05 -07:00"), r.ExitCode)))
	_, err := io.WriteString(w, b.String())
	return err
}

// visible are the lines that everybody sees: server, phase, strongest facts.
func visible(r *Report) []string {
	lines := []string{targetLine(r)}
	if r.Phase != nil {
		lines = append(lines, phaseLine(r.Phase))
	}
	for _, c := range strongest(r, 3) {
		lines = append(lines, "- "+OneLine(factLine(c), 200))
	}
	return lines
}

// fence writes lines as a fenced block whose fence is longer than any run of
// backticks in them.
func fence(b *strings.Builder, language string, lines []string) {
	marks := "```"
	for strings.Contains(strings.Join(lines, "\n"), marks) {
		marks += "`"
	}
	fmt.Fprintf(b, "%s%s\n", marks, language)
	for _, l := range lines {
		// One line must stay one line.
		fmt.Fprintln(b, strings.ReplaceAll(l, "\n", " "))
	}
	fmt.Fprintln(b, marks)
}

var markdownEscapes = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]",
	"#", "\\#", "|", "\\|", "~", "\\~", "!", "\\!", "@", "&#64;", "://", "&#58;//", "\n", " ",
)

// escaped is text that Markdown shows as it is: no links, no mentions, no HTML.
func escaped(s string) string { return markdownEscapes.Replace(s) }

package report

import (
	"github.com/fatih/color"

	"github.com/whyhang/whyhang/rules/rule"
)

// Palette colours the text report. The zero Palette colours nothing: renderers
// never ask whether the output is a terminal.
type Palette struct {
	on bool
}

// Colours is a palette that colours, whatever standard output is: the caller
// has decided for the output at hand (the library decides once per process, by
// standard output alone).
func Colours() Palette { return Palette{on: true} }

func (p Palette) paint(s string, attributes ...color.Attribute) string {
	if !p.on || s == "" {
		return s
	}
	c := color.New(attributes...)
	c.EnableColor()
	return c.Sprint(s)
}

// verdict colours the verdict word: calm green and blue for what needs no
// hand, yellow for doubt, red for what does not mend itself.
func (p Palette) verdict(v rule.Verdict, s string) string {
	switch v {
	case rule.Ready:
		return p.paint(s, color.FgGreen, color.Bold)
	case rule.Loading:
		return p.paint(s, color.FgBlue, color.Bold)
	case rule.Deadlocked, rule.Broken, rule.Unresponsive:
		return p.paint(s, color.FgRed, color.Bold)
	}
	return p.paint(s, color.FgYellow, color.Bold)
}

func (p Palette) head(s string) string    { return p.paint(s, color.Bold) }
func (p Palette) faint(s string) string   { return p.paint(s, color.Faint) }
func (p Palette) warning(s string) string { return p.paint(s, color.FgYellow) }

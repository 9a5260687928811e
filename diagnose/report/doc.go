// Package report renders a judgement: report.go is the JSON contract
// (whyhang.report/1), and one file per format writes it for people.
//
// Reports only render. They may not decide anything, look anything up, or read
// the clock, so a saved snapshot renders the same a year later. Everything that
// came from the target is neutralised in New, once, for all formats.
package report

package facts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// told makes a mark of "LINE KIND RANK", RANK "-" for none.
func told(s string) evidence.Mark {
	var line int64
	var kind, rank string
	fmt.Sscanf(s, "%d %s %s", &line, &kind, &rank)
	at := time.Date(2026, 2, 22, 22, 0, int(line), 0, time.UTC)
	return evidence.Mark{Signature: "sglang.any." + kind, Engine: "sglang", Phase: evidence.PhaseWeights, Kind: evidence.Kind(kind), Rank: strings.TrimPrefix(rank, "-"),
		Count: 1, First: evidence.Hit{Line: line, At: &at, Text: s}}
}

func timelineWith(errors []evidence.Line, logs ...[]string) (*Timeline, []evidence.Log) {
	s := &evidence.Snapshot{}
	for _, l := range logs {
		var log evidence.Log
		for _, m := range l {
			log.Marks = append(log.Marks, told(m))
		}
		s.Logs = append(s.Logs, log)
	}
	s.Logs[0].Errors = errors
	e := engines.ByID("sglang")
	t := timelineOf(s, Engine{Known: e})
	return &t, s.Logs
}

// The first failure that nothing made harmless is the cause.
func TestFailuresThatWereOvercome(t *testing.T) {
	for _, tc := range []struct {
		lines string
		fatal int64
	}{
		{"3 fatal TP1", 3},
		{"3 fatal TP1, 5 end TP1", 0},
		{"3 fatal TP1, 5 end TP2", 3},
		{"3 fatal TP1, 5 end -", 3},
		{"3 fatal TP1, 5 progress TP1", 3},
		{"3 fatal TP1, 2 end TP1", 3},
		{"3 fatal TP1, 4 fatal TP2, 5 begin TP1", 4},
		{"3 fatal -, 5 end TP1", 3},
		{"3 fatal -, 5 ready -", 0},
		{"3 fatal TP1, 5 ready -, 7 fatal TP1", 7},
	} {
		tl, _ := timelineWith(nil, strings.Split(tc.lines, ", "))
		got := int64(0)
		if tl.Fatal != nil {
			got = tl.Fatal.Hit.Line
		}
		if got != tc.fatal {
			t.Errorf("%s: the cause is line %d, want %d", tc.lines, got, tc.fatal)
		}
	}
}

// What is told of a log: causes above consequences, repetitions of all ranks in
// one, unknown errors in their place.
func TestDecisiveLines(t *testing.T) {
	tl, logs := timelineWith(
		[]evidence.Line{{Number: 4, Rank: "TP1", Text: "ValueError: x"}, {Number: 9, Text: "RuntimeError: y"}},
		[]string{"2 retry TP0", "3 retry TP1", "5 end TP1", "7 fatal TP2", "8 consequence -"})
	var got []string
	for _, d := range tl.Decisive(logs) {
		got = append(got, fmt.Sprintf("%d-%d x%d %s %s known=%v harmless=%d", d.Line, d.LastLine, d.Count, d.Kind, d.Rank, d.Known, d.Harmless))
	}
	want := []string{
		"2-3 x2 retry  known=true harmless=0", "4-4 x1 fatal TP1 known=false harmless=5", "7-7 x1 fatal TP2 known=true harmless=0",
		"8-8 x1 consequence  known=true harmless=0", "9-9 x1 fatal  known=false harmless=0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Lines of two logs are put in order by their times, not by their numbers.
func TestOrderOfTwoLogs(t *testing.T) {
	tl, _ := timelineWith(nil, []string{"30 fatal TP1"}, []string{"1 begin TP0"})
	if tl.events[0].Mark.Kind != evidence.KindBegin {
		t.Error("an earlier line of another log comes later")
	}
	// Line 1 of the second log was written long after line 30 of the first.
	s := &evidence.Snapshot{Logs: []evidence.Log{{Marks: []evidence.Mark{told("30 ready -")}}, {Marks: []evidence.Mark{told("1 fatal TP0")}}}}
	late := s.Logs[0].Marks[0].First.At.Add(time.Hour)
	s.Logs[1].Marks[0].First.At = &late
	two := timelineOf(s, Engine{Known: engines.ByID("sglang")})
	if two.Fatal == nil || two.Ready == nil {
		t.Errorf("a failure after the ready line: fatal %v, ready %v", two.Fatal, two.Ready)
	}
	s.Logs[1].Marks[0].First.At = nil // nothing says when: not after the ready line
	if two := timelineOf(s, Engine{Known: engines.ByID("sglang")}); two.Fatal != nil {
		t.Errorf("a failure of which no time is known: %v", two.Fatal)
	}
}

// Numbers of several marks and ranks make series.
func TestServed(t *testing.T) {
	a, b := told("3 activity -"), told("2 heartbeat -")
	at := func(line int64, v float64) evidence.Point {
		return evidence.Point{Line: line, Values: map[string]float64{"tokens_per_s": v, "unheard-of": 1}}
	}
	a.Series = &evidence.Series{Every: 2, Points: []evidence.Point{at(3, 10), at(5, 30), at(9, 20)}}
	b.Series = &evidence.Series{Every: 1, Points: []evidence.Point{at(2, 0), at(10, 0)}}
	tl := timelineOf(&evidence.Snapshot{Logs: []evidence.Log{{Marks: []evidence.Mark{a, b}}}}, Engine{Known: engines.ByID("sglang")})
	got := tl.Served()
	if len(got) != 1 || len(got[0].Points) != 5 || got[0].Last().Line != 10 || got[0].Last().Value != 0 ||
		got[0].Min != 10 || got[0].Median != 20 || got[0].Max != 30 {
		t.Errorf("%+v", got)
	}
}

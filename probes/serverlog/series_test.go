package serverlog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decoding is a log of n lines about batches, each with its own number.
func decoding(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "[2026-02-22 23:%02d:%02d TP0] Decode batch, #running-req: %d, #token: 274, token usage: 0.00, cuda graph: False, gen throughput (token/s): %d.50, #queue-req: 2\n", i/60%60, i%60, i%7, i)
		if i%10 == 0 {
			b.WriteString("[2026-02-22 23:00:00] INFO:     127.0.0.1:1 - \"GET /metrics HTTP/1.1\" 200 OK\n")
		}
	}
	return b.String()
}

// However long a log is, its series spans it evenly, with few points, the last
// line among them.
func TestSeriesSpansTheLog(t *testing.T) {
	s := knownLines(t)
	for _, n := range []int{1, 2, 100, 128, 129, 1000, 54321} {
		log := scanFrom(t, s, strings.NewReader(decoding(n)))
		m := markOf(log, "sglang.serving.decode", "TP0")
		if m.Count != int64(n) || m.Series == nil {
			t.Fatalf("%d lines: %d counted, series %v", n, m.Count, m.Series)
		}
		points := m.Series.Points
		if len(points) > maxSamples+1 || len(points) < min(n, maxSamples/2) {
			t.Errorf("%d lines: %d points", n, len(points))
		}
		for i, p := range points {
			nth := int64(p.Values["tokens_per_s"])
			want := int64(i)*m.Series.Every + 1
			if i == len(points)-1 {
				want = int64(n)
			}
			if nth != want || p.Line != nth+(nth-1)/10 || p.Values["waiting"] != 2 || p.Values["running"] != float64(nth%7) || p.At == nil {
				t.Fatalf("%d lines, every %d: point %d is of line %d, %v at %v; want that of the %d.", n, m.Series.Every, i, p.Line, p.Values, p.At, want)
			}
		}
	}
}

// A log that is read twice, once whole and once in two parts as it grows, gives
// the same series.
func TestSeriesOfAGrowingLog(t *testing.T) {
	c := catalogueOf(t, knownLines(t))
	whole := decoding(30000)
	one, err := newScanner(c).read(source{ReaderAt: strings.NewReader(whole)}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	s := newScanner(c)
	for _, part := range []string{whole[:1<<20+77], whole} {
		two, err := s.read(source{ReaderAt: strings.NewReader(part)}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if len(part) < len(whole) {
			continue
		}
		a := markOf(told(t, c, one, strings.NewReader(whole)), "sglang.serving.decode", "TP0")
		b := markOf(told(t, c, two, strings.NewReader(whole)), "sglang.serving.decode", "TP0")
		if !reflect.DeepEqual(a, b) {
			t.Errorf("differs: %+v, %+v", a.Series, b.Series)
		}
	}
}

// Numbers that are none are left out.
func TestSeriesOfNonsense(t *testing.T) {
	s := knownLines(t)
	log := scanFrom(t, s, strings.NewReader(
		"[2026-02-22 23:00:00 TP0] Decode batch, #running-req: 99999999999999999999999, gen throughput (token/s): 1.2.3, #queue-req: 1\n"+
			"[2026-02-22 23:00:00 TP1] Decode batch, what now\n"))
	m := markOf(log, "sglang.serving.decode", "TP0")
	if m.Series == nil || len(m.Series.Points) != 1 || len(m.Series.Points[0].Values) != 1 || m.Series.Points[0].Values["waiting"] != 1 {
		t.Errorf("%+v", m.Series)
	}
	if m := markOf(log, "sglang.serving.decode", "TP1"); m.Count != 1 || m.Series != nil {
		t.Errorf("%+v", m)
	}
}

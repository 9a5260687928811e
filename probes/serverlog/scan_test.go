package serverlog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestLinesAndPieces(t *testing.T) {
	tests := []struct {
		name, text string
		lines      int64
		ready      int64 // how often "is ready to serve" must be found
		line       int64 // of the last one
	}{
		{"empty", "", 0, 0, 0},
		{"no newline at the end", "[10:00:00] e is ready to serve", 1, 1, 1},
		{"newline at the end", "a\n[10:00:00] e is ready to serve\n", 2, 1, 2},
		{"CRLF", "a\r\nb\r\n[10:00:00] e is ready to serve\r\n", 3, 1, 3},
		{"carriage returns make pieces, not lines", "a\r50%\r100%[10:00:00] e is ready to serve\rz\nb\n", 2, 1, 1},
		{"a hole of NULs before it", "a\n" + strings.Repeat("\x00", 5000) + "[10:00:00] e is ready to serve\n", 2, 1, 2},
		{"nothing but a hole", strings.Repeat("\x00", 5000), 0, 0, 0},
		{"cut by a hole", "is ready\x00\x00 to serve\n", 1, 0, 0},
		{"twice in a line, by two processes", "[10:00:00 TP0] e is ready to serve[10:00:01 TP1] e is ready to serve\n", 1, 2, 1},
		{"broken UTF-8 around it", "\xff\xfe [10:00:00] e is ready to serve \xc3\n", 1, 1, 1},
		{"coloured prefix", "\x1b[1;36m(e)\x1b[0;0m \x1b[1;33m[10:00:00] e is ready to serve\x1b[0m\n", 1, 1, 1},
		{"almost", "e is ready to server\ne is ready to serve\ne is ready to serv\n", 3, 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := scanText(t, few, tt.text)
			if log.Lines != tt.lines || log.SizeBytes != int64(len(tt.text)) {
				t.Errorf("%d lines, %d bytes; want %d, %d", log.Lines, log.SizeBytes, tt.lines, len(tt.text))
			}
			var count, line int64
			for _, m := range log.Marks {
				count += m.Count
				line = m.First.Line
				if m.Last != nil {
					line = m.Last.Line
				}
			}
			if count != tt.ready || line != tt.line {
				t.Errorf("found %d times, last in line %d; want %d, %d", count, line, tt.ready, tt.line)
			}
		})
	}
}

func TestRanksTimesAndValues(t *testing.T) {
	log := scanText(t, few, strings.Join([]string{
		"[10:00:00 TP0] load begins",
		"[10:00:00 TP1] load begins",
		"loading shards:  0% 0/4",
		"loading shards: 25% 1/4\rloading shards: 25% 1/4\rloading shards: 50% 2/4[10:00:07 TP1] load ends after 7 s",
		"[10:00:09 TP0] load ends after 9 s",
		"[10:00:09 TP0] load ends after long",
		"[10:00:10] e is ready to serve",
	}, "\n"))
	type short struct {
		Rank            string
		Count, Distinct int64
		First, Last     string
		Values          map[string]string
	}
	got := map[string]short{}
	for _, m := range log.Marks {
		s := short{Rank: m.Rank, Count: m.Count, Distinct: m.Distinct, First: clockOf(m.First), Values: m.First.Values}
		if m.Last != nil {
			s.Last, s.Values = clockOf(*m.Last), m.Last.Values
		}
		got[m.Signature+" "+m.Rank] = s
	}
	want := map[string]short{
		"e.weights.begin TP0": {Rank: "TP0", Count: 1, First: "10:00:00"},
		"e.weights.begin TP1": {Rank: "TP1", Count: 1, First: "10:00:00"},
		"e.weights.bar ":      {Count: 4, Distinct: 2, First: "-", Last: "-", Values: map[string]string{"percent": "50", "done": "2", "total": "4"}},
		"e.weights.end TP1":   {Rank: "TP1", Count: 1, First: "10:00:07", Values: map[string]string{"seconds": "7"}},
		"e.weights.end TP0":   {Rank: "TP0", Count: 1, First: "10:00:09", Values: map[string]string{"seconds": "9"}},
		"e.ready.ready ":      {Count: 1, First: "10:00:10"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if log.First == nil || log.Last == nil || log.Last.Sub(*log.First) != 10*time.Second {
		t.Errorf("first %v, last %v", log.First, log.Last)
	}
}

func clockOf(h evidence.Hit) string {
	if h.At == nil {
		return "-"
	}
	return h.At.Format(time.TimeOnly)
}

func TestLaunchCutsWhatIsAbove(t *testing.T) {
	old := "[09:00:00] server starts\n[09:00:01] args are x\n[09:00:09] e is ready to serve\n[09:00:10] Traceback (most recent call last):\n  File x\nOldError: boo\n"
	tests := []struct {
		name, text string
		launches   int
		line       int64
		ready      int64
		errors     int
	}{
		{"none", "[10:00:00] e is ready to serve\n", 0, 0, 1, 0},
		{"one", old, 1, 1, 1, 1},
		{"two lines of one launch", "[09:00:00] server starts\nnoise\n[09:00:01] args are x\n", 1, 1, 0, 0},
		{"the second forgets the first", old + "[10:00:00] server starts\n[10:00:01] args are y\n", 2, 7, 0, 0},
		{"the same line again is another launch", "[09:00:00] server starts\n[10:00:00] server starts\n", 2, 2, 0, 0},
		{"a launch after one that died while loading", "[09:00:00] server starts\n[09:00:05] load begins\n[10:00:00] args are y\n", 2, 3, 0, 0},
		{"three", old + old + old, 3, 13, 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := scanText(t, few, tt.text)
			if log.Launches != tt.launches || log.LaunchLine != tt.line || markOf(log, "e.ready.ready", "").Count != tt.ready || len(log.Errors) != tt.errors {
				t.Errorf("%d launches, line %d, ready %d times, errors %v", log.Launches, log.LaunchLine, markOf(log, "e.ready.ready", "").Count, log.Errors)
			}
			for _, m := range log.Marks {
				if m.First.Line < log.LaunchLine {
					t.Errorf("%s is from line %d, above the launch in line %d", m.Signature, m.First.Line, log.LaunchLine)
				}
			}
		})
	}
}

func TestPromptsAreNeitherReadNorKept(t *testing.T) {
	log := scanText(t, few, strings.Join([]string{
		"[10:00:00] Receive: obj=GenerateReqInput(rid='1', text='e is ready to serve and my name is Eve')",
		`[10:00:01] Received request cmpl-1: prompt: 'e is ready to serve, Eve', params: x`,
		`{"messages": [{"role": "user", "content": "e is ready to serve, Eve"}]}`,
		"[10:00:02] decode batch, then prompt: 'Eve'",
	}, "\n"))
	if n := markOf(log, "e.ready.ready", "").Count; n != 0 {
		t.Errorf("a prompt counted as a known line %d times", n)
	}
	if n := markOf(log, "e.serving.batch", "").Count; n != 1 {
		t.Errorf("the line itself was found %d times", n)
	}
	if text := fmt.Sprint(log); strings.Contains(text, "Eve") {
		t.Errorf("a prompt was kept: %s", text)
	}
}

// A line without end costs no more memory, and what it holds is found once.
func TestEndlessLine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, withPattern := range []bool{false, true} {
		marker, signature := " [10:00:00 TP2] e is ready to serve ", "e.ready.ready"
		if withPattern {
			marker, signature = " [10:00:00 TP2] load ends after 7 s ", "e.weights.end"
		}
		var b bytes.Buffer
		var want int64
		for b.Len() < 3<<20 {
			b.WriteString(strings.Repeat("x", r.IntN(200<<10)))
			b.WriteString(marker)
			want++
		}
		b.WriteString("\nnext")
		log := scanFrom(t, few, bytes.NewReader(b.Bytes()))
		if m := markOf(log, signature, "TP2"); m.Count != want || m.First.At == nil {
			t.Errorf("%s: found %d of %d, %+v", signature, m.Count, want, m.First)
		}
		if log.Lines != 2 {
			t.Errorf("%d lines, want 2", log.Lines)
		}
	}
}

// randomLog is a text of known lines, near misses and rubbish.
func randomLog(r *rand.Rand, n int) string {
	parts := []string{
		"[10:00:00 TP0] load begins", "[10:00:01 TP1] load ends after 7 s", "loading shards: 25% 1/4", "e is ready to serve",
		"[10:00:02 TP3] lock not acquired", "decode batch", "server starts", "args are ", "\n", "\n", "\n", "\r", "\x00", "\x00\x00\x00",
		"\x1b[1;33m", "\x1b[0m", "Traceback (most recent call last):\n", "  File x\n", "KnownError: y\n", "StrangeError: z\n",
		"prompt: 'load begins", " and ", "\xff\xc3", "load be", "CUDA error", "is ready", "[10:00:03", "]",
	}
	var b strings.Builder
	for range n {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	return b.String()
}

// What is read does not depend on where the chunks end, nor on how often the
// reading stopped in between.
func TestChunksAndPausesDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	c := catalogueOf(t, few)
	// What a traceback's prefix is depends on the whole line being there.
	ignore := cmpopts.IgnoreFields(evidence.Log{}, "First")
	for range 100 {
		text := randomLog(r, 1+r.IntN(120))
		want := scanText(t, few, text)

		s := newScanner(c)
		s.chunk = 1 + r.IntN(40)
		res, err := s.read(source{ReaderAt: strings.NewReader(text)}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, told(t, c, res, strings.NewReader(text)), ignore); diff != "" {
			t.Fatalf("%q in chunks of %d (-at once, +in chunks):\n%s", text, s.chunk, diff)
		}

		s = newScanner(c)
		for at := 0; at < len(text); at += 1 + r.IntN(50) {
			if _, err := s.read(source{ReaderAt: strings.NewReader(text[:at])}, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		if res, err = s.read(source{ReaderAt: strings.NewReader(text)}, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, told(t, c, res, strings.NewReader(text)), ignore); diff != "" {
			t.Fatalf("%q with pauses (-at once, +with pauses):\n%s", text, diff)
		}
	}
}

// A log that was truncated under a writer holds a hole as long as it once was.
// It is stepped over without being read.
func TestHoleOfGigabytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	const hole = 64 << 30
	if err := os.WriteFile(path, []byte("[09:00:00 TP0] load begins\ncut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("[10:00:00] e is ready to serve\n"), hole); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	res, err := newScanner(catalogueOf(t, few)).read(source{ReaderAt: f, seekData: seekData(f)}, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	log := told(t, catalogueOf(t, few), res, f)
	if !res.done || log.Lines != 2 || markOf(log, "e.ready.ready", "").First.Line != 2 || markOf(log, "e.weights.begin", "TP0").Count != 1 {
		t.Errorf("done %v, %+v", res.done, log)
	}
	if got := log.Tail[len(log.Tail)-1]; got.Text != "[10:00:00] e is ready to serve" {
		t.Errorf("last line %+v", got)
	}
}

func TestTimeIsUp(t *testing.T) {
	text := strings.Repeat("[10:00:00 TP0] load begins\n", 200_000)
	c := catalogueOf(t, few)
	s := newScanner(c)
	res, err := s.read(source{ReaderAt: strings.NewReader(text)}, time.Now().Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if res.done || res.size == 0 || res.size >= int64(len(text)) {
		t.Fatalf("done %v after %d of %d bytes", res.done, res.size, len(text))
	}
	if res, err = s.read(source{ReaderAt: strings.NewReader(text)}, time.Time{}); err != nil || !res.done || res.lines != 200_000 {
		t.Errorf("gone on: %v, %+v", err, res)
	}
}

func FuzzScan(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		f.Add([]byte(randomLog(r, 40)), uint8(r.IntN(200)))
	}
	c := catalogueOf(f, few)
	f.Fuzz(func(t *testing.T, text []byte, size uint8) {
		s := newScanner(c)
		s.chunk = 1 + int(size)
		res, err := s.read(source{ReaderAt: bytes.NewReader(text)}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		log := told(t, c, res, bytes.NewReader(text))
		// Of many errors the order decides which are kept.
		if len(text) < 4096 && len(log.Errors) < keepFirst {
			want := scanFrom(t, few, bytes.NewReader(text))
			if diff := cmp.Diff(want, log, cmpopts.IgnoreFields(evidence.Log{}, "First")); diff != "" {
				t.Fatalf("%q in chunks of %d (-at once, +in chunks):\n%s", text, s.chunk, diff)
			}
		}
		if log.SizeBytes != int64(len(text)) || !res.done {
			t.Fatalf("read %d of %d bytes", log.SizeBytes, len(text))
		}
		for _, m := range log.Marks {
			if m.First.Line < 1 || m.First.Line > log.Lines || m.First.Offset < 0 || m.First.Offset > log.SizeBytes || len(m.First.Text) > maxText || len(m.Rank) > maxRank {
				t.Fatalf("impossible mark %+v in %d lines", m, log.Lines)
			}
			if m.Last != nil && m.Last.Line < m.First.Line {
				t.Fatalf("last before first: %+v", m)
			}
		}
		for _, l := range append(log.Tail, log.Errors...) {
			if l.Number < 1 || l.Number > log.Lines || len(l.Text) > maxText {
				t.Fatalf("impossible line %+v in %d lines", l, log.Lines)
			}
		}
	})
}

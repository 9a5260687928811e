package serverlog

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "[10:00:00] hello", "[10:00:00] hello"},
		{"colours", "\x1b[1;36m(EngineCore pid=1)\x1b[0;0m INFO", "(EngineCore pid=1) INFO"},
		{"title of a terminal", "\x1b]0;owned\x07hello \x1b]8;;http://x\x1b\\link", "hello link"},
		{"escape cut off", "hello\x1b[1;3", "hello"},
		{"escape broken off", "a\x1b[1\nb", "ab"},
		{"lone escape", "hello\x1b", "hello"},
		{"control characters", "a\x07\x08b\tc\x7f\u0085d", "ab cd"},
		{"text that runs backwards", "user \u202eresu\u202c \u2066x\u2069", "user resu x"},
		{"no UTF-8", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"a secret", "--api-key sk-abcdefghijklmnopqrstuvwxyz0123456789", ""},
		{"a prompt of SGLang", "Receive: obj=GenerateReqInput(rid='1', text='my secret')", "Receive: obj=…"},
		{"a prompt of vLLM", "Received request cmpl-1: prompt: 'my secret', params: x", "Received request …"},
		{"long", strings.Repeat("é", 500), strings.Repeat("é", (maxText-3)/2) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := clean([]byte(tt.in), 0)
			if tt.name == "a secret" {
				if strings.Contains(got, "abcdefghijklmnop") {
					t.Errorf("kept the secret: %q", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// What was found stays visible, however far back in the line it stands, and the
// secret in front of it does not become visible by the cut.
func TestCleanKeepsThePlace(t *testing.T) {
	for _, before := range []int{0, 250, 350, 3000, 6300, 6500, 70_000} {
		secret := "api_key=abcdefgh-" + strings.Repeat("s3cr3t", 20)
		line := strings.Repeat("x", before) + " " + secret + " the marker is here"
		got := clean([]byte(line), strings.Index(line, "the marker"))
		if !strings.Contains(got, "the marker is here") || len(got) > maxText || strings.Contains(got, "s3cr3t") {
			t.Errorf("%d bytes before: %q", before, got)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("\x1b[1;36m(EngineCore pid=1)\x1b[0;0m INFO \xff"), 3)
	f.Add([]byte(strings.Repeat("\x1b]0;", 300)), 900)
	f.Fuzz(func(t *testing.T, b []byte, at int) {
		if at < 0 || at > len(b) {
			t.Skip()
		}
		s := clean(b, at)
		if len(s) > maxText || !utf8.ValidString(s) {
			t.Fatalf("clean(%q, %d) = %q", b, at, s)
		}
		if i := strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e }); i >= 0 {
			t.Fatalf("clean(%q, %d) = %q keeps a control character", b, at, s)
		}
	})
}

func TestPieceAround(t *testing.T) {
	for _, sep := range []string{"\n", "\r", "\x00", "\r\n"} {
		for pad := range 20 {
			buf := []byte("before" + sep + strings.Repeat("\t", pad) + "the piece" + strings.Repeat("y", pad) + sep + "after")
			at := bytes.Index(buf, []byte("piece"))
			start, end := pieceAround(buf, at)
			if got, want := string(buf[start:end]), strings.Repeat("\t", pad)+"the piece"+strings.Repeat("y", pad); got != want {
				t.Errorf("%q at %d: %q, want %q", buf, at, got, want)
			}
		}
	}
}

func TestTimes(t *testing.T) {
	s := setup{Formats: []evidence.LineFormat{
		{Engine: "full", Time: `\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)[ \]]`, Layout: "2006-01-02 15:04:05"},
		{Engine: "yearless", Time: `INFO (?P<time>\d\d-\d\d \d\d:\d\d:\d\d)`, Layout: "01-02 15:04:05"},
		{Engine: "utc", Time: `UTC (?P<time>\d\d:\d\d:\d\d)`, Layout: "15:04:05", UTC: true},
		{Engine: "zoned", Time: `at (?P<time>\S+)$`, Layout: time.RFC3339},
	}}
	berlin := time.FixedZone("CET", 3600)
	c, err := newCatalogue(s.Signatures, s.Formats, time.Date(2026, 1, 2, 0, 30, 0, 0, berlin), berlin)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ line, want string }{
		{"[2026-02-22 22:59:08] x", "2026-02-22T22:59:08+01:00"},
		{"[2026-02-22 22:59:08.250 TP0] x", "2026-02-22T22:59:08.25+01:00"},
		{"[2026-02-22 22:59:08,250] x", "2026-02-22T22:59:08.25+01:00"},
		{"[2026-13-22 22:59:08] x", ""},
		{"INFO 01-01 10:00:00 x", "2026-01-01T10:00:00+01:00"},
		// Last year: it would be in the future.
		{"INFO 12-31 10:00:00 x", "2025-12-31T10:00:00+01:00"},
		// Tomorrow is a clock that differs.
		{"INFO 01-02 20:00:00 x", "2026-01-02T20:00:00+01:00"},
		{"INFO 02-30 20:00:00 x", ""},
		{"at 2026-02-22T22:59:08Z", "2026-02-22T22:59:08Z"},
		{"nothing", ""},
		// The one nearest to what was found counts.
		{"[2026-02-22 10:00:00] a [2026-02-22 11:00:00] b", "2026-02-22T11:00:00+01:00"},
	}
	for _, tt := range tests {
		got := ""
		if at := c.timeBefore([]byte(tt.line), "full"); at != nil {
			got = at.Format(time.RFC3339Nano)
		}
		if got != tt.want {
			t.Errorf("%q: %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestCatalogueRefuses(t *testing.T) {
	good := evidence.Signature{ID: "good", Literal: "literal"}
	tests := []struct {
		name string
		s    evidence.Signature
		f    evidence.LineFormat
	}{
		{"short literal", evidence.Signature{ID: "bad", Literal: "abc"}, evidence.LineFormat{}},
		{"newline in literal", evidence.Signature{ID: "bad", Literal: "abcd\nefgh"}, evidence.LineFormat{}},
		{"wrong pattern", evidence.Signature{ID: "bad", Literal: "abcd", Pattern: "("}, evidence.LineFormat{}},
		{"wrong rank", good, evidence.LineFormat{Engine: "bad", Rank: "(?P<rank>"}},
		{"rank without group", good, evidence.LineFormat{Engine: "bad", Rank: `TP\d`}},
		{"time without group", good, evidence.LineFormat{Engine: "bad", Time: `\d\d:\d\d`}},
	}
	for _, tt := range tests {
		_, err := newCatalogue([]evidence.Signature{tt.s}, []evidence.LineFormat{tt.f}, later, time.UTC)
		if err == nil || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: error %v does not name it", tt.name, err)
		}
	}
}

func TestUnknownErrors(t *testing.T) {
	vllm := func(s string) string {
		var b strings.Builder
		for line := range strings.SplitSeq(s, "\n") {
			b.WriteString("(EngineCore pid=7) ERROR 11-30 17:24:13 [core.py:9] " + line + "\n")
		}
		return b.String()
	}
	tests := []struct {
		name, text string
		want       []string
	}{
		{"traceback", "Traceback (most recent call last):\n  File \"x\", line 1\n    y()\nValueError: bad shape\n", []string{"ValueError: bad shape"}},
		{"without newline at the end", "Traceback (most recent call last):\n  File \"x\", line 1\nValueError: bad shape", []string{"ValueError: bad shape"}},
		{"of a dotted class", "Traceback (most recent call last):\n  x\nzmq.error.Again: Resource temporarily unavailable\n", []string{"zmq.error.Again: Resource temporarily unavailable"}},
		{"behind a prefix in every line", vllm("Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'model'"), []string{"KeyError: 'model'"}},
		{"in a chain", "Traceback (most recent call last):\n  x\nKeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  y\nRuntimeError: 2\n", []string{"KeyError: 1", "RuntimeError: 2"}},
		{"that a signature knows", "Traceback (most recent call last):\n  x\nKnownError: y\n", nil},
		{"of an optional import", "Ignore import error when loading x: Traceback (most recent call last):\n  x\nImportError: y\n", nil},
		{"warnings", "x.py:1: UserWarning: y\n  warnings.warn(\nFutureWarning: z\n", nil},
		{"of CUDA", "CUDA error: unknown thing\n", []string{"CUDA error: unknown thing"}},
		{"of glog", "[rank3]:[E222 23:40:27.4 ProcessGroupNCCL.cpp:629] x\n[rank3]:[E0222 23:40:27.4 ProcessGroupNCCL.cpp:629] strange\n[rank3]:[W0222 23:40:27.4 ProcessGroupNCCL.cpp:629] warning\n", []string{"[rank3]:[E0222 23:40:27.4 ProcessGroupNCCL.cpp:629] strange"}},
		{"of level ERROR", "(EngineCore pid=7) ERROR 11-30 17:24:13 [core.py:9] strange\n", []string{"(EngineCore pid=7) ERROR 11-30 17:24:13 [core.py:9] strange"}},
		{"of argparse", "usage: x\nx: error: unrecognized arguments: --tpp 8\n", []string{"x: error: unrecognized arguments: --tpp 8"}},
		{"endless traceback", "Traceback (most recent call last):\n" + strings.Repeat("  x\n", maxTrace+10) + "ValueError: late\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, l := range scanText(t, few, tt.text).Errors {
				got = append(got, l.Text)
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString("CUDA error: number " + string(rune('A'+i%26)) + strings.Repeat("x", i%7) + "\n")
	}
	log := scanText(t, few, b.String())
	if len(log.Errors) != keepFirst+keepLast || log.Errors[0].Number != 1 || log.Errors[keepFirst].Number != 996 {
		t.Errorf("%d errors, first in line %d", len(log.Errors), log.Errors[0].Number)
	}
}

func TestNovelty(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  int // how many of them say something new
	}{
		{"the same with other numbers", []string{"step 1 took 2.5 s", "step 2 took 3.5 s", "step 33 took 12.25 s"}, 1},
		{"the same with other times and addresses", []string{"[2026-11-30 10:00:00] at 127.0.0.1:80 of a1b2c3d4e5", "[2026-11-30 10:00:01] at 127.0.0.2:81 of f1b2c3d4e6"}, 1},
		{"different lines", []string{"loading a", "loading b", "loading c"}, 3},
		{"different ranks", []string{"[10:00:00 TP0] done", "[10:00:00 TP1] done"}, 2},
		{"known phases of different ranks", []string{"[10:00:00 TP0] load begins", "[10:00:00 TP0] load begins"}, 2},
		{"retries", []string{"[10:00:00] lock not acquired by a", "[10:00:00] lock not acquired by b"}, 0},
		{"a known bar that moves", []string{"loading shards: 25% 1/4", "loading shards: 25% 1/4", "loading shards: 50% 2/4"}, 2},
		{"an unknown bar that moves", []string{"Reticulating:  5%|#  | 1/20 [00:01<00:20,  1.2s/it]", "Reticulating: 10%|#  | 2/20 [00:02<00:19,  1.2s/it]"}, 2},
		{"an unknown bar whose clock moves", []string{"Reticulating:  5%|#  | 1/20 [00:01<00:20,  1.2s/it]", "Reticulating:  5%|#  | 1/20 [00:09<00:99,  9.2s/it]"}, 1},
		{"statistics", []string{"decode batch, 27.0 tok/s", "decode batch, 27.3 tok/s"}, 1},
		{"nothing", []string{"", "   ", "\x1b[0m"}, 0},
	}
	c := catalogueOf(t, few)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, got := newNovelty(c), 0
			for _, l := range tt.lines {
				if isNew, _ := n.isNew([]byte(l)); isNew {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d of %q are new, want %d", got, tt.lines, tt.want)
			}
		})
	}
}

// 800 lines of two ranks that compile in turn were no sign of progress, and
// were not taken for one.
func TestNoveltyOfTheLockLines(t *testing.T) {
	c := catalogueOf(t, knownLines(t))
	n := newNovelty(c)
	waits, content := 0, 0
	for _, line := range sampleLines(t, "sglang-0.5.23-cpu-tp2-debug.log")[147:884] {
		isNew, _ := n.isNew(line)
		if bytes.Contains(line, []byte("ttempting to acquire lock")) || bytes.Contains(line, []byte(" not acquired on ")) {
			waits++
			if isNew {
				t.Errorf("new: %s", line)
			}
		} else if isNew {
			content++
		}
	}
	if waits < 700 || content == 0 || content > 40 {
		t.Errorf("%d lines of waiting, %d of content", waits, content)
	}
}

func FuzzNormal(f *testing.F) {
	f.Add([]byte("[2026-11-30 10:00:00 TP0] at 127.0.0.1:80 of 0x7f3a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := normal(b); len(n) > maxNormal+len(b) {
			t.Fatalf("%d bytes of %d", len(n), len(b))
		}
	})
}

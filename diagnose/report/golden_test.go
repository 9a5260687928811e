package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
)

var update = flag.Bool("update", false, "rewrite testdata/golden")

const (
	snapshots = "../../testdata/snapshots"
	golden    = "../../testdata/golden"
)

func judged(t *testing.T, name string) *Report {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(snapshots, name, "snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s evidence.Snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return New(rules.Judge(&s))
}

var formats = map[string]func(*bytes.Buffer, *Report) error{
	"txt":  func(b *bytes.Buffer, r *Report) error { return Text(b, r, TextOptions{Width: 80}) },
	"md":   func(b *bytes.Buffer, r *Report) error { return Markdown(b, r) },
	"json": func(b *bytes.Buffer, r *Report) error { return JSON(b, r) },
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"lock-cycle", "incident-1-reading", "incident-3-ready-passive", "incident-4-ready-below-baseline", "no-answer", "no-permission", "dead-worker", "gone-zombie"} {
		r := judged(t, name)
		for ext, write := range formats {
			var b bytes.Buffer
			if err := write(&b, r); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(golden, name+"."+ext)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, d)
			}
		}
	}
}

// hostile is a snapshot whose target tries to break out of every format.
func hostile(t *testing.T) *Report {
	t.Helper()
	evil := "\x1b[2J\x1b]0;owned\a\u202egnp.exe\u200b\r\n```\n</details><script>alert(1)</script> @everyone [x](http://evil) | \x00\xff"
	b, err := os.ReadFile(filepath.Join(snapshots, "lock-cycle", "snapshot.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s evidence.Snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	s.Processes[0].Name, s.Processes[0].Argv = evil, []string{evil, "--model", evil}
	for i := range s.Frames {
		for j := range s.Frames[i].Processes {
			for k := range s.Frames[i].Processes[j].Threads {
				s.Frames[i].Processes[j].Threads[k].Name = evil
				s.Frames[i].Processes[j].Threads[k].Wchan = evil
			}
		}
	}
	s.Logs = []evidence.Log{{Path: evil, Source: evil, Lines: 3, Tail: []evidence.Line{{Number: 1, Text: evil}, {Number: 2, Text: "``````````"}}, Errors: []evidence.Line{{Number: 3, Text: evil}}}}
	s.Check = &evidence.Check{Verdict: evidence.CheckError, Says: evil, Exchanges: []evidence.Exchange{{Content: evil, Error: evil}}}
	s.Probes = append(s.Probes, evidence.ProbeRun{Name: "check", Status: evidence.OK, Detail: evil, Hint: evil})
	return New(rules.Judge(&s))
}

func TestHostileText(t *testing.T) {
	r := hostile(t)
	for ext, write := range formats {
		var b bytes.Buffer
		if err := write(&b, r); err != nil {
			t.Fatal(err)
		}
		out := b.String()
		if !utf8.ValidString(out) {
			t.Errorf("%s: broken UTF-8", ext)
		}
		for _, c := range out {
			if harmful(c) {
				t.Errorf("%s: holds %U", ext, c)
				break
			}
		}
		switch ext {
		case "md":
			checkFences(t, out)
		case "json":
			var back Report
			if err := json.Unmarshal(b.Bytes(), &back); err != nil {
				t.Errorf("json: %v", err)
			}
		}
	}
}

// checkFences reads Markdown as a renderer does, and holds that nothing of the
// target stands outside a fence as anything but escaped text.
func checkFences(t *testing.T, out string) {
	t.Helper()
	fence := ""
	for n, l := range strings.Split(out, "\n") {
		run := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(run) >= 3:
			fence = run
		case fence != "" && len(run) >= len(fence) && strings.Trim(l, "`") == "":
			fence = ""
		case fence == "":
			for _, bad := range []string{"<script", "@everyone", "](http", "://", "</details><"} {
				if strings.Contains(strings.ReplaceAll(l, `\]`, ""), bad) {
					t.Errorf("line %d shows %q: %s", n+1, bad, l)
				}
			}
		}
	}
	if fence != "" {
		t.Error("a fence is never closed")
	}
}

func TestMarkdownFitsATicket(t *testing.T) {
	r := hostile(t)
	for i := range 5000 {
		r.Threads = append(r.Threads, ThreadGroup{Count: 1, Does: "wait in futex", State: "S"})
		r.RuledOut = append(r.RuledOut, RuledOut{Verdict: "loading", Because: strings.Repeat("long ", i%40)})
	}
	var b bytes.Buffer
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > maxMarkdownLines {
		t.Errorf("%d lines", n)
	}
	checkFences(t, b.String())
}

// A report in JSON reads back as the same report, and holds no null lists.
func TestJSONContract(t *testing.T) {
	for _, name := range []string{"lock-cycle", "gone-zombie", "incident-4-ready-below-baseline"} {
		var b bytes.Buffer
		if err := JSON(&b, judged(t, name)); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b.Bytes(), []byte("null")) {
			t.Errorf("%s holds null:\n%s", name, b.String())
		}
		var keys map[string]any
		if err := json.Unmarshal(b.Bytes(), &keys); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"schema", "tool", "taken", "took_ms", "window_ms", "target", "verdict", "cause", "strength", "exit_code", "sentence", "timeline", "gpus", "findings", "ruled_out", "not_evaluated", "flips_if", "warnings", "next", "probes"} {
			if _, ok := keys[k]; !ok {
				t.Errorf("%s lacks %q", name, k)
			}
		}
		if at, err := time.Parse(time.RFC3339Nano, keys["taken"].(string)); err != nil || at.IsZero() {
			t.Errorf("taken: %v", keys["taken"])
		}
	}
}

func TestWidth(t *testing.T) {
	r := judged(t, "incident-4-ready-below-baseline")
	for _, width := range []int{80, 200} {
		var b bytes.Buffer
		if err := Text(&b, r, TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(b.String(), "Evidence of")
		for l := range strings.Lines(first) {
			if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > width && !strings.Contains(l, "$ ") {
				t.Errorf("%d columns in %d: %s", n, width, l)
			}
		}
	}
}

func TestColoursAreTheCallersChoice(t *testing.T) {
	r := judged(t, "lock-cycle")
	var plain, coloured bytes.Buffer
	if err := Text(&plain, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Text(&coloured, r, TextOptions{Palette: Colours()}); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsRune(plain.Bytes(), 0x1b) || !bytes.ContainsRune(coloured.Bytes(), 0x1b) {
		t.Error("colour did not follow the palette")
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if !isClean(c) || Clean(c) != c {
			t.Errorf("%q became %q", s, c)
		}
	})
}

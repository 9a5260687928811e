package serverlog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// What the sample logs tell stands next to them. -update writes it anew; read
// the difference before believing it.
func TestSampleLogs(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("sample logs: %v, %v", paths, err)
	}
	s := knownLines(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			log := scanFrom(t, s, bytes.NewReader(b))
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			if err := enc.Encode(log); err != nil {
				t.Fatal(err)
			}
			want := path + ".json"
			if *update {
				if err := os.WriteFile(want, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			w, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(w), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What matters most in them, said once more by hand.
func TestSampleLogsInShort(t *testing.T) {
	type fact struct {
		signature, rank string
		count           int64
		line            int64 // of the last one
	}
	tests := []struct {
		log        string
		lines      int64
		launchLine int64
		facts      []fact
	}{
		{"sglang-0.5.23-cpu-tp1.log", 68, 1, []fact{
			{"sglang.weights.end", "", 1, 45}, {"sglang.ready.ready", "", 1, 61},
		}},
		{"sglang-0.5.23-cpu-tp2-debug.log", 975, 1, []fact{
			{"sglang.weights.begin", "TP0", 1, 102}, {"sglang.weights.begin", "TP1", 1, 114},
			{"sglang.weights.end", "TP0", 1, 116}, {"sglang.weights.end", "TP1", 1, 117},
			{"sglang.ready.ready", "", 1, 971}, {"vllm.ready.ready", "", 0, 0},
		}},
		{"vllm-0.32-cpu-first-start.log", 137, 4, []fact{
			{"vllm.ready.ready", "", 1, 101}, {"vllm.any.shm", "", 2, 49}, {"sglang.warm-up.http-up", "", 0, 0},
		}},
		{"llamacpp-2026-10-start-and-two-requests.log", 27, 2, []fact{
			{"llamacpp.ready.ready", "", 1, 10}, {"llamacpp.weights.end", "", 1, 9},
		}},
		{"incident-sglang.log", 312, 4, []fact{
			{"sglang.weights.end", "TP7", 1, 96}, {"sglang.communicator.world", "TP3", 1, 57}, {"sglang.ready.ready", "", 1, 312},
		}},
	}
	s := knownLines(t)
	for _, tt := range tests {
		b, err := os.ReadFile(filepath.Join(logs, tt.log))
		if err != nil {
			t.Fatal(err)
		}
		log := scanFrom(t, s, bytes.NewReader(b))
		if log.Lines != tt.lines || log.SizeBytes != int64(len(b)) || log.LaunchLine != tt.launchLine || log.Launches != 1 {
			t.Errorf("%s: %d lines, %d bytes, launch %d at line %d", tt.log, log.Lines, log.SizeBytes, log.Launches, log.LaunchLine)
		}
		for _, f := range tt.facts {
			m := markOf(log, f.signature, f.rank)
			line := m.First.Line
			if m.Last != nil {
				line = m.Last.Line
			}
			if m.Count != f.count || line != f.line {
				t.Errorf("%s: %s %s: %d times, last in line %d; want %d, %d", tt.log, f.signature, f.rank, m.Count, line, f.count, f.line)
			}
		}
		if len(log.Errors) > 0 {
			t.Errorf("%s: errors in a healthy log: %v", tt.log, log.Errors)
		}
	}
}

// All eight ranks of the incident had loaded their weights.
func TestIncidentRanks(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(logs, "incident-sglang.log"))
	if err != nil {
		t.Fatal(err)
	}
	log := scanFrom(t, knownLines(t), bytes.NewReader(b))
	var ranks []string
	var last evidence.Hit
	for _, m := range log.Marks {
		if m.Signature == "sglang.weights.end" {
			ranks = append(ranks, m.Rank)
			last = m.First
		}
	}
	if got := strings.Join(ranks, " "); got != "TP0 TP1 TP2 TP3 TP4 TP5 TP6 TP7" {
		t.Errorf("ranks %s", got)
	}
	began := markOf(log, "sglang.weights.begin", "TP0").First.At
	if began == nil || last.At == nil || last.At.Sub(*began).Seconds() != 313 {
		t.Errorf("weights from %v to %v", began, last.At)
	}
	bar := markOf(log, "common.weights.shards", "")
	if bar.Count != 65 || bar.Distinct != 64 || bar.Last.Values["percent"] != "100" || bar.Last.Values["total"] != "64" {
		t.Errorf("bar %+v", bar)
	}
}

// sampleLines are the lines of a sample log.
func sampleLines(t *testing.T, name string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(logs, name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(b, newline)
}

// Forms that the sample logs do not hold: coloured prefixes of older vLLM, two
// prefixes and two markers in one line, ranks in the form of each version.
func TestLineForms(t *testing.T) {
	tests := []struct {
		line, signature, rank, at, value string
	}{
		{"\x1b[1;36m(Worker_TP3 pid=353)\x1b[0;0m INFO 10-02 10:00:00 [gpu_model_runner.py:1] Model loading took 71.42 GiB and 61.03 seconds", "vllm.weights.end", "Worker_TP3", "10:00:00", "61.03"},
		{"\x1b[0;36m(EngineCore_DP1 pid=7)\x1b[0;0m INFO 01-20 10:00:00 [core.py:9] init engine (profile, create kv cache, warmup model) took 21.29 seconds", "vllm.warm-up.engine-up", "EngineCore_DP1", "10:00:00", "21.29"},
		{"(Worker_TP0 pid=350) (Worker_TP7 pid=357) INFO 04-25 10:00:00 [x.py:1] Graph capturing finished in 43 secs, took 1.41 GiB", "vllm.graph-capture.end", "Worker_TP7", "10:00:00", "43"},
		{"(VllmWorker rank=3 pid=7) INFO 04-20 10:00:00 [x.py:1] Loading weights took 3.5 seconds", "vllm.weights.read", "VllmWorker rank=3", "10:00:00", "3.5"},
		{"(VllmWorker TP3 pid=7) INFO 07-20 10:00:00 [x.py:1] Loading weights took 3.5 seconds", "vllm.weights.read", "VllmWorker TP3", "10:00:00", "3.5"},
		{"(VllmWorker-0 pid=10239) INFO 11-30 10:00:00 [x.py:1] Loading weights took 3.5 seconds", "vllm.weights.read", "VllmWorker-0", "10:00:00", "3.5"},
		{"(Worker pid=10239) INFO 11-30 10:00:00 [x.py:1] Loading weights took 3.5 seconds", "vllm.weights.read", "", "10:00:00", "3.5"},
		{"INFO 04-20 10:00:00 [x.py:1] Loading weights took 3.5 seconds", "vllm.weights.read", "", "10:00:00", "3.5"},
		{"[2026-02-22 10:00:00 DP1 PP0 TP3 EP3] Load weight end. elapsed=3.5 s, type=X", "sglang.weights.end", "DP1 PP0 TP3 EP3", "10:00:00", "3.5"},
		{"[2026-02-22 10:00:00,250 TP3] Load weight end. elapsed=3.5 s, type=X", "sglang.weights.end", "TP3", "10:00:00", "3.5"},
		// The nearest prefix counts, though it names no rank.
		{"[2026-02-22 09:00:00 TP3] half a [2026-02-22 10:00:00] The server is fired up and ready to roll!", "sglang.ready.ready", "", "10:00:00", ""},
		{"[rank3]:[E0222 10:00:00.426415540 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=42)", "common.any.collective-timeout", "rank3", "10:00:00", ""},
		// A library's line behind an engine's prefix.
		{"[2026-02-22 10:00:00 TP3] Lock 1 not acquired on /x.lock, waiting 0.05 seconds ...", "common.any.lock-wait", "TP3", "10:00:00", ""},
	}
	s := knownLines(t)
	for _, tt := range tests {
		log := scanText(t, s, tt.line)
		m := markOf(log, tt.signature, tt.rank)
		if m.Count != 1 || clockOf(m.First) != tt.at || m.First.Values["seconds"] != tt.value {
			t.Errorf("%q: %+v", tt.line, log.Marks)
		}
		if len(log.Errors) > 0 {
			t.Errorf("%q: errors %v", tt.line, log.Errors)
		}
	}
	// Rows of dots are progress, though they hold no number.
	c := catalogueOf(t, s)
	n := newNovelty(c)
	for i, want := range []bool{true, false, true} {
		if isNew, _ := n.isNew([]byte([]string{"..........", "..........", "............"}[i])); isNew != want {
			t.Errorf("dots, look %d: %v", i, isNew)
		}
	}
}

// A log that holds the same start twice tells only the second.
func TestSampleLogsTwice(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("sample logs: %v, %v", paths, err)
	}
	s := knownLines(t)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasSuffix(b, newline) {
			b = append(b, '\n')
		}
		once := scanFrom(t, s, bytes.NewReader(b))
		twice := scanFrom(t, s, bytes.NewReader(slices.Concat(b, b)))
		if twice.Launches != 2 || twice.LaunchLine != once.Lines+once.LaunchLine || len(twice.Marks) != len(once.Marks) {
			t.Errorf("%s: %d launches, the last in line %d of %d, %d marks", path, twice.Launches, twice.LaunchLine, twice.Lines, len(twice.Marks))
		}
		for i, m := range twice.Marks {
			o := once.Marks[i]
			if m.Signature != o.Signature || m.Rank != o.Rank || m.Count != o.Count || m.First.Line != o.First.Line+once.Lines {
				t.Errorf("%s: %+v is not %+v", path, m, o)
			}
		}
	}
}

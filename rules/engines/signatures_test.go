package engines

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

var update = flag.Bool("update", false, "write testdata anew")

// logs is where the sample logs are, and what the log probe's tests read.
const logs = "../../testdata/logs"

// compiled are all signatures, with their patterns.
func compiled(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	all := map[string]*regexp.Regexp{}
	for _, s := range Signatures() {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			t.Fatalf("%s: %v", s.ID, err)
		}
		all[s.ID] = re
	}
	return all
}

func hits(s *evidence.Signature, re *regexp.Regexp, line string) bool {
	return strings.Contains(line, s.Literal) && re.MatchString(line)
}

func TestSignaturesAreWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^[a-z]+\.[a-z-]+\.[a-z0-9-]+$`)
	seen := map[string]bool{}
	for _, s := range Signatures() {
		if !id.MatchString(s.ID) {
			t.Errorf("%s: not engine.phase.what", s.ID)
		}
		if seen[s.ID] {
			t.Errorf("%s: twice", s.ID)
		}
		seen[s.ID] = true
		// Shorter ones would slow the reading of every log.
		if len(s.Literal) < 8 {
			t.Errorf("%s: literal %q is shorter than 8 bytes", s.ID, s.Literal)
		}
		if len(s.Examples) == 0 || len(s.Near) == 0 {
			t.Errorf("%s: needs an example and a near miss", s.ID)
		}
		if s.Phase == "" && slices.Contains([]evidence.Kind{begin, mark, progress, end, launch, isReady}, s.Kind) {
			t.Errorf("%s: a %s needs a phase", s.ID, s.Kind)
		}
	}
}

// Each example belongs to its own signature. It belongs to no other engine's,
// or a log would show marks of an engine that did not write it. Lines of
// libraries may stand in every engine's log.
func TestExamplesAndNearMisses(t *testing.T) {
	patterns := compiled(t)
	all := Signatures()
	for i := range all {
		s := &all[i]
		for _, line := range s.Examples {
			if !hits(s, patterns[s.ID], line) {
				t.Errorf("%s does not match its example %q", s.ID, line)
			}
			for j := range all {
				o := &all[j]
				if o.Engine != s.Engine && o.Engine != "common" && s.Engine != "common" && hits(o, patterns[o.ID], line) {
					t.Errorf("%s matches the example of %s %q", o.ID, s.ID, line)
				}
			}
		}
		for _, line := range s.Near {
			if hits(s, patterns[s.ID], line) {
				t.Errorf("%s matches its near miss %q", s.ID, line)
			}
		}
	}
}

// A series finds numbers in the signature's own examples.
func TestSeriesFindNumbers(t *testing.T) {
	all, series := Signatures(), 0
	for i := range all {
		s := &all[i]
		if s.Series == "" {
			continue
		}
		series++
		re, err := regexp.Compile(s.Series)
		if err != nil {
			t.Errorf("%s: %v", s.ID, err)
			continue
		}
		for _, name := range re.SubexpNames()[1:] {
			if !slices.Contains([]string{"running", "waiting", "tokens_per_s", "prompt_tokens_per_s", "kv_percent"}, name) {
				t.Errorf("%s: nobody keeps a group named %q", s.ID, name)
			}
		}
		found := map[string]bool{}
		for _, line := range s.Examples {
			g := re.FindStringSubmatch(line)
			for n := range g {
				found[re.SubexpNames()[n]] = found[re.SubexpNames()[n]] || n > 0 && g[n] != ""
			}
		}
		for _, name := range re.SubexpNames()[1:] {
			if !found[name] {
				t.Errorf("%s: no example holds %s", s.ID, name)
			}
		}
	}
	if series < 5 {
		t.Errorf("only %d series", series)
	}
}

// The real logs hold lines of one engine each.
func TestSampleLogsBelongToOneEngine(t *testing.T) {
	patterns := compiled(t)
	all := Signatures()
	paths, err := filepath.Glob(filepath.Join(logs, "*.log"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("sample logs: %v, %v", paths, err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		engine, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "incident-"), "-")
		engine = strings.TrimSuffix(engine, ".log")
		counts := map[string]int{}
		for line := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r", "\n"), "\n") {
			for i := range all {
				if hits(&all[i], patterns[all[i].ID], line) {
					counts[all[i].Engine]++
					if e := all[i].Engine; e != engine && e != "common" {
						t.Errorf("%s: %s matches %q", path, all[i].ID, line)
					}
				}
			}
		}
		if counts[engine] < 5 {
			t.Errorf("%s: only %d lines of %s", path, counts[engine], engine)
		}
	}
}

// The log probe may not import this package; its tests read the signatures
// from a file. This keeps the file true.
func TestSignatureFile(t *testing.T) {
	type file struct {
		Signatures []evidence.Signature  `json:"signatures"`
		Formats    []evidence.LineFormat `json:"formats"`
	}
	f := file{Formats: Formats()}
	for _, s := range Signatures() {
		s.Examples, s.Near = nil, nil
		f.Signatures = append(f.Signatures, s)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(f); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(logs, "signatures.json"), b.Bytes())
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not up to date, run go test ./rules/engines -update\n%s", path, cmp.Diff(string(want), string(got)))
	}
}

package rules_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/rule"
)

var update = flag.Bool("update", false, "rewrite the snapshots that are built by code, and every want.json's findings")

// corpus is where the cases are: a folder each with snapshot.json or
// snapshot.json.gz, and want.json.
const corpus = "../testdata/snapshots"

// want is what the judgement of a snapshot must be. Findings that are not
// listed fail the test as well.
type want struct {
	// Says is what the case is, for the reader.
	Says     string        `json:"says"`
	Verdict  rule.Verdict  `json:"verdict"`
	Cause    rule.Cause    `json:"cause"`
	Strength rule.Strength `json:"strength"`
	ExitCode int           `json:"exit_code"`
	// Findings are the rules that fire, the carrying one first.
	Findings []rule.ID `json:"findings"`
	// Near are rules that come close and must not fire.
	Near []rule.ID `json:"near,omitempty"`
	// Sentence are pieces of the sentence; Warnings the details of warnings.
	Sentence []string `json:"sentence,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// NotKnown are pieces of what the report must list as not known, "rule: what".
	NotKnown []string `json:"not_known,omitempty"`
}

func TestCorpus(t *testing.T) {
	for _, dir := range caseDirs(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			s, w := load(t, dir)
			j := rules.Judge(s)
			got := want{Says: w.Says, Verdict: j.Verdict, Cause: j.Cause, Strength: j.Strength, ExitCode: j.ExitCode, Near: w.Near, Sentence: w.Sentence, Warnings: w.Warnings, NotKnown: w.NotKnown}
			for _, f := range j.Findings {
				if !slices.Contains(got.Findings, f.Rule) {
					got.Findings = append(got.Findings, f.Rule)
				}
			}
			if d := cmp.Diff(w, got); d != "" {
				t.Errorf("judgement (-want +got):\n%s\n%s", d, j.Sentence)
			}
			for _, id := range w.Near {
				if slices.Contains(got.Findings, id) {
					t.Errorf("%s fired, and is only near", id)
				}
			}
			for _, piece := range w.Sentence {
				if !strings.Contains(j.Sentence, piece) {
					t.Errorf("the sentence lacks %q: %s", piece, j.Sentence)
				}
			}
			for _, detail := range w.Warnings {
				if !slices.ContainsFunc(j.Warnings, func(w rule.Warning) bool { return w.Detail == detail && w.Effect != "" }) {
					t.Errorf("no warning with an effect about %q: %+v", detail, j.Warnings)
				}
			}
			for _, piece := range w.NotKnown {
				if !slices.ContainsFunc(j.NotEvaluated, func(n rules.NotEvaluated) bool { return strings.Contains(string(n.Rule)+": "+n.Missing, piece) }) {
					t.Errorf("%q is not listed as not known: %+v", piece, j.NotEvaluated)
				}
			}
			checkCites(t, s, j)
		})
	}
}

// checkCites resolves every citation in the snapshot as a stranger would, by
// its JSON pointer.
func checkCites(t *testing.T, s *evidence.Snapshot, j *rules.Judgement) {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	check := func(who rule.ID, cites []rule.Cite) {
		for _, c := range cites {
			v, ok := resolve(tree, c.At)
			if !ok {
				t.Errorf("%s cites %s, which is not there", who, c.At)
			} else if v != c.Value {
				t.Errorf("%s cites %s as %q, it is %q", who, c.At, c.Value, v)
			}
		}
	}
	for _, f := range j.Findings {
		if len(f.Cites) == 0 {
			t.Errorf("%s cites nothing", f.Rule)
		}
		check(f.Rule, f.Cites)
	}
	for _, o := range j.RuledOut {
		check(o.Rule, o.Cites)
	}
}

func resolve(v any, pointer string) (string, bool) {
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch node := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = node[key]; !ok {
				return "", omitted[key] // a zero that omitempty leaves out
			}
		case []any:
			var n json.Number = json.Number(key)
			i, err := n.Int64()
			if err != nil || i < 0 || int(i) >= len(node) {
				return "", false
			}
			v = node[i]
		default:
			return "", false
		}
	}
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v), true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// omitted are fields that are left out when empty and may be cited as empty.
var omitted = map[string]bool{"finish_reason": true, "error_type": true, "reasoning": true}

// TestEveryRule holds that a rule explains itself, fires somewhere, and has
// been kept from firing by something that looks alike.
func TestEveryRule(t *testing.T) {
	fires, near := map[rule.ID]bool{}, map[rule.ID]bool{}
	for _, dir := range caseDirs(t) {
		_, w := load(t, dir)
		for _, id := range w.Findings {
			fires[id] = true
		}
		for _, id := range w.Near {
			near[id] = true
		}
	}
	seen := map[rule.ID]bool{}
	for _, r := range rules.All() {
		switch {
		case seen[r.ID]:
			t.Errorf("two rules are called %s", r.ID)
		case r.Title == "" || len(r.Doc) < 200:
			t.Errorf("%s does not explain itself", r.ID)
		case r.Verdict != "" && !strings.Contains(r.Doc, "What would make it wrong"):
			t.Errorf("%s does not say what would make it wrong", r.ID)
		case !fires[r.ID]:
			t.Errorf("%s fires in no case of %s", r.ID, corpus)
		case !near[r.ID]:
			t.Errorf("%s has no near miss in %s", r.ID, corpus)
		}
		seen[r.ID] = true
	}
	for _, r := range rules.All() {
		for _, id := range r.Suppresses {
			if !seen[id] {
				t.Errorf("%s suppresses %s, which is no rule", r.ID, id)
			}
		}
	}
}

// TestBuiltCases holds that the snapshots built by code are those in the
// corpus.
func TestBuiltCases(t *testing.T) {
	for _, c := range builtCases() {
		dir := filepath.Join(corpus, c.name)
		b, err := json.MarshalIndent(c.build(), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, '\n')
		wb, err := json.MarshalIndent(c.want, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		wb = append(wb, '\n')
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string][]byte{"snapshot.json": b, "want.json": wb} {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		for name, content := range map[string][]byte{"snapshot.json": b, "want.json": wb} {
			have, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !bytes.Equal(have, content) {
				t.Errorf("%s/%s is not what the code builds (%v); run: go test ./rules -run TestBuiltCases -update", dir, name, err)
			}
		}
	}
}

func caseDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(corpus, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases in %s: %v", corpus, err)
	}
	return dirs
}

func load(t *testing.T, dir string) (*evidence.Snapshot, want) {
	t.Helper()
	var w want
	b, err := os.ReadFile(filepath.Join(dir, "want.json"))
	if err == nil {
		err = json.Unmarshal(b, &w)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err = os.ReadFile(filepath.Join(dir, "snapshot.json"))
	if err != nil {
		b, err = os.ReadFile(filepath.Join(dir, "snapshot.json.gz"))
		if err == nil {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(b)); err == nil {
				b, err = io.ReadAll(z)
			}
		}
	}
	var s evidence.Snapshot
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &s, w
}

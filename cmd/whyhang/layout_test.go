package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/whyhang/whyhang/"

// mayImport says which packages of ours a package may import, by the longest
// prefix: cmd → diagnose → {probes, rules} → probes/evidence.
var mayImport = map[string][]string{
	"cmd/":                 {"diagnose", "probes", "rules"},
	"diagnose/":            {"diagnose", "probes", "rules"},
	"diagnose/report/":     {"rules", "probes/evidence"},
	"diagnose/demo/":       {"rules/rule", "probes/chat/fakeserver"},
	"probes/":              {"probes"},
	"probes/evidence/":     {},
	"probes/chat/":         {"probes"},
	"probes/bench/":        {"probes"},
	"rules/":               {"rules", "probes/evidence"},
	"rules/rule/":          {"rules/facts", "rules/engines", "probes/evidence"},
	"rules/facts/":         {"rules/engines", "probes/evidence"},
	"rules/engines/":       {"probes/evidence"},
	"testdata/realservers": {"probes", "diagnose", "rules"},
}

// onlyIn are packages from outside that only one place may use.
var onlyIn = map[string]string{
	"github.com/NVIDIA/go-nvml": "probes/gpu/",
	"github.com/hpcloud/tail":   "probes/serverlog/",
	"github.com/fatih/color":    "diagnose/report/",
}

// notInRules are what makes a judgement depend on more than the snapshot.
var notInRules = []string{"os", "os/exec", "net", "net/http", "C", "syscall", "io/ioutil", "math/rand", "math/rand/v2"}

// TestImportDirection holds the one rule of the house: data goes one way.
func TestImportDirection(t *testing.T) {
	eachGoFile(t, func(path string, src []byte) {
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(path) + "/"
		test := strings.HasSuffix(path, "_test.go")
		for _, im := range f.Imports {
			name, _ := strconv.Unquote(im.Path.Value)
			if ours, ok := strings.CutPrefix(name, module); ok && !test {
				if !allowed(dir, ours) {
					t.Errorf("%s imports %s: imports go cmd → diagnose → {probes, rules} → probes/evidence", path, ours)
				}
			}
			for outside, place := range onlyIn {
				if strings.HasPrefix(name, outside) && !strings.HasPrefix(dir, place) {
					t.Errorf("%s imports %s, which only %s may", path, name, place)
				}
			}
			if strings.HasPrefix(dir, "rules/") && !test && slices.Contains(notInRules, name) {
				t.Errorf("%s imports %s: rules judge evidence and do nothing else", path, name)
			}
			if strings.HasPrefix(dir, "probes/evidence/") && strings.Contains(name, ".") {
				t.Errorf("%s imports %s: evidence uses the standard library only", path, name)
			}
		}
		if strings.HasPrefix(dir, "rules/") && !test && strings.Contains(string(src), "time.Now(") {
			t.Errorf("%s reads the clock", path)
		}
	})
}

func allowed(dir, imported string) bool {
	best, list := "", []string(nil)
	for prefix, l := range mayImport {
		if strings.HasPrefix(dir, prefix) && len(prefix) > len(best) {
			best, list = prefix, l
		}
	}
	return slices.ContainsFunc(list, func(p string) bool { return imported == p || strings.HasPrefix(imported, p+"/") })
}

// TestHouse holds the size of files and that every package says what it may
// not do.
func TestHouse(t *testing.T) {
	docs := map[string]bool{}
	packages := map[string]bool{}
	eachGoFile(t, func(path string, src []byte) {
		if n := strings.Count(string(src), "\n"); n > 400 {
			t.Errorf("%s has %d lines; 400 is the most a reader can hold", path, n)
		}
		dir := filepath.Dir(path)
		if !strings.HasSuffix(path, "_test.go") {
			packages[dir] = true
		}
		if filepath.Base(path) == "doc.go" || filepath.Base(path) == "main.go" {
			docs[dir] = true
		}
	})
	for dir := range packages {
		if !docs[dir] {
			t.Errorf("%s has no doc.go", dir)
		}
	}
}

// eachGoFile calls f with every Go file of the repository, by its path from
// the root.
func eachGoFile(t *testing.T, f func(path string, src []byte)) {
	t.Helper()
	root := "../.."
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root && d.Name() != ".." {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		seen++
		f(rel, src)
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("read %d files: %v", seen, err)
	}
}

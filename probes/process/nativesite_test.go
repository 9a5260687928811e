package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process/scenario"
)

// waitsWithSites reads stacks and names their functions, and nothing else.
func waitsWithSites(r *Reader, procs []evidence.Process) []evidence.Wait {
	ctx := context.Background()
	a := make([]answer[sleepers], len(procs))
	words := make([]answer[wordsOf], len(procs))
	var waits []evidence.Wait
	for i := range procs {
		seen := r.lookAt(&procs[i], LookOptions{Threads: true}, newHeld())
		defer seen.sleepers.release()
		a[i] = answer[sleepers]{Value: seen.sleepers, Done: true}
		words[i] = answer[wordsOf]{Value: r.words(&procs[i], seen.sleepers, false), Done: true}
		for _, s := range seen.sleepers.waiting {
			waits = append(waits, evidence.Wait{PID: procs[i].PID, TID: s.tid})
		}
	}
	r.sites(ctx, procs, a, words, waits)
	return waits
}

// A wait is named by the program's function, not by the C library's.
func TestSites(t *testing.T) {
	deleted := filepath.Join(t.TempDir(), "abba")
	b, err := os.ReadFile(scenario.Build(t, "abba"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(deleted, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, exe string }{
		{"dynamic", scenario.Build(t, "abba")},
		{"static", scenario.Build(t, "abba", "-static")},
		{"deleted", deleted},
		{"musl", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "musl" {
				tc.exe = scenario.BuildMusl(t, "abba")
			}
			s := scenario.StartCmd(t, nil, exec.Command(tc.exe, "3"))
			if tc.name == "deleted" {
				if !isRoot() {
					t.Skip("a deleted file is opened through map_files, which needs CAP_CHECKPOINT_RESTORE")
				}
				if err := os.Remove(deleted); err != nil {
					t.Fatal(err)
				}
			}
			r := reader(t)
			got := map[string]int{}
			for _, w := range waitsWithSites(r, treeOf(t, r, s.PID)) {
				if w.Site == nil {
					t.Errorf("thread %d has no site", w.TID)
					continue
				}
				if w.Site.Module != filepath.Base(tc.exe) || w.Site.OffsetBytes == 0 {
					t.Errorf("site: %+v", w.Site)
				}
				got[w.Site.Function]++
			}
			if got["ab"] != 1 || got["ba"] != 1 || got["idle_thread"] != 3 {
				t.Errorf("functions: %v", got)
			}
		})
	}
}

// The stacks of 5,000 threads, with their functions known from a reading
// before.
func BenchmarkSites5000(b *testing.B) {
	r := reader(b)
	procs := treeOf(b, r, scenario.Start(b, "abba", "4997").PID)
	seen := r.lookAt(&procs[0], LookOptions{Threads: true}, newHeld())
	defer seen.sleepers.release()
	a := []answer[sleepers]{{Value: seen.sleepers, Done: true}}
	words := []answer[wordsOf]{{Value: r.words(&procs[0], seen.sleepers, false), Done: true}}
	waits := make([]evidence.Wait, len(seen.sleepers.waiting))
	b.ReportAllocs()
	for b.Loop() {
		r.sites(context.Background(), procs, a, words, waits)
	}
	if waits[0].Site == nil {
		b.Fatal("no site")
	}
}

package facts

import (
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// grown are two looks, ten seconds apart, at a cache that goes from a to b
// while process 1 writes so many bytes.
func grown(kind evidence.CacheKind, a, b evidence.CacheFrame, wrote uint64, also ...evidence.Process) *evidence.Snapshot {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := &evidence.Snapshot{Processes: append([]evidence.Process{{PID: 1, Name: "python3"}}, also...), Caches: []evidence.Cache{{Path: "/c", Kind: kind}}}
	for i, c := range []evidence.CacheFrame{a, b} {
		c.Path, c.At = "/c", start.Add(time.Duration(10*i)*time.Second)
		out := uint64(i) * wrote
		f := evidence.Frame{At: c.At, SinceMS: float64(10000 * i), Caches: []evidence.CacheFrame{c}}
		for _, p := range s.Processes {
			f.Processes = append(f.Processes, evidence.ProcessFrame{PID: p.PID, State: "S", WriteCharBytes: &out})
		}
		s.Frames = append(s.Frames, f)
	}
	return s
}

// What grows in a cache is the tree's doing only as far as it wrote.
func TestCacheGrowth(t *testing.T) {
	few, many := evidence.CacheFrame{Files: 10, Bytes: 1000}, evidence.CacheFrame{Files: 12, Bytes: 9000}
	cut := many
	cut.Cut = true
	compiler := evidence.Process{PID: 2, PPID: 1, Name: "ptxas"}
	for _, tc := range []struct {
		name  string
		s     *evidence.Snapshot
		grows float64
	}{
		{"written by the tree", grown(evidence.CacheBuild, few, many, 8000), 8000},
		{"written by another server", grown(evidence.CacheBuild, few, many, 100), 0},
		{"written by a compiler, which writes by itself", grown(evidence.CacheBuild, few, many, 0, compiler), 8000},
		{"new files without a byte", grown(evidence.CacheBuild, few, evidence.CacheFrame{Files: 12, Bytes: 1000}, 500), 2},
		{"unchanged", grown(evidence.CacheBuild, few, few, 8000), 0},
		{"cleared", grown(evidence.CacheBuild, many, few, 8000), 0},
		{"not seen in full", grown(evidence.CacheBuild, few, cut, 8000), 0},
		{"a hub's cache", grown(evidence.CacheDownload, few, many, 8000), 0},
	} {
		m := Between(tc.s, 0, 1)
		if got := m.Delta(BuildCache); got != tc.grows {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.grows)
		}
	}
}

func TestDownloadGrowth(t *testing.T) {
	file := func(size, allocated uint64, pid int) evidence.CacheFrame {
		return evidence.CacheFrame{Partial: []evidence.PartialFile{{Path: "/c/x.incomplete", SizeBytes: size, AllocatedBytes: allocated, PID: pid}}}
	}
	for _, tc := range []struct {
		name  string
		s     *evidence.Snapshot
		grows float64
	}{
		{"open in the tree", grown(evidence.CacheDownload, file(1000, 4096, 1), file(9000, 12288, 1), 0), 8000},
		{"open elsewhere", grown(evidence.CacheDownload, file(1000, 4096, 7), file(9000, 12288, 7), 0), 0},
		{"not known whose, and the tree writes as much", grown(evidence.CacheDownload, file(1000, 4096, 0), file(9000, 12288, 0), 8000), 8000},
		{"made in full length before the first byte", grown(evidence.CacheDownload, file(9000, 0, 1), file(9000, 4096, 1), 0), 4096},
		{"new", grown(evidence.CacheDownload, evidence.CacheFrame{}, file(500, 4096, 1), 0), 500},
		{"still", grown(evidence.CacheDownload, file(1000, 4096, 1), file(1000, 4096, 1), 0), 0},
	} {
		m := Between(tc.s, 0, 1)
		if got := m.Delta(Downloaded); got != tc.grows {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.grows)
		}
	}
}

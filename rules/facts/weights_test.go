package facts

import (
	"math"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestSteadyRate(t *testing.T) {
	curve := func(step, every, from float64) []sample {
		// A loader that gets step bytes every so many seconds, seen every 0.25 s.
		var c []sample
		for s := 0.0; s <= 2; s += 0.25 {
			c = append(c, sample{s: s, done: step * math.Floor((s+from)/every)})
		}
		return c
	}
	for _, test := range []struct {
		name string
		c    []sample
		want float64
	}{
		{"steady", curve(50, 0.25, 0), 200},
		{"bursts of a second", curve(50, 1, 0.4), 50},
		{"bursts of half a second", curve(25, 0.5, 0.1), 50},
		{"nothing", curve(0, 1, 0), 0},
		{"one look", curve(50, 1, 0)[:1], 0},
		{"shrinks", []sample{{s: 0, done: 9}, {s: 1, done: 3}}, 0},
	} {
		if got := steadyRate(test.c); math.Abs(got-test.want) > 0.01*test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 50 << 20: "50.0 MiB", 547e9: "509 GiB", -2048: "-2.0 KiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%v: %q, want %q", n, got, want)
		}
	}
}

// shards is a model of four shards of 100 bytes, of which a process has one in
// its hands, at pos.
func shards(held string, pos uint64, more ...evidence.Process) *evidence.Snapshot {
	s := &evidence.Snapshot{Weights: &evidence.Weights{Path: "/m", TotalBytes: 400}}
	for _, name := range []string{"a", "b", "c", "d"} {
		s.Weights.Files = append(s.Weights.Files, evidence.WeightFile{Path: "/m/" + name, RealPath: "/blobs/" + name, SizeBytes: 100})
	}
	s.Processes = append([]evidence.Process{{PID: 1, State: "S"}}, more...)
	s.Processes[0].Files = []evidence.OpenFile{{Path: held, FD: 3}}
	for i := range 3 {
		at := pos + uint64(i)
		s.Frames = append(s.Frames, evidence.Frame{SinceMS: float64(i) * 1000,
			Processes: []evidence.ProcessFrame{{PID: 1, State: "S", Files: []evidence.FileFrame{{Path: held, FD: 3, PosBytes: &at}}}}})
	}
	return s
}

// Shards that were closed before whyhang came count: those before the one in
// hand, by their names in the model's directory or behind its links.
func TestEarlierShards(t *testing.T) {
	for held, want := range map[string]float64{"/m/a": 52, "/m/c": 252, "/blobs/c": 252, "/elsewhere/x": 52} {
		if w := Of(shards(held, 50)).WeightsDone; w.DoneBytes != want || w.TotalBytes != 400 {
			t.Errorf("%s: %v of %v", held, w.DoneBytes, w.TotalBytes)
		}
	}
}

func TestNetworkFS(t *testing.T) {
	for fs, want := range map[string]bool{"nfs4": true, "fuse": true, "fuse.s3fs": true, "virtiofs": true, "ext4": false, "xfs": false, "overlay": false, "fuseblk": false, "tmpfs": false} {
		if NetworkFS(fs) != want {
			t.Error(fs)
		}
	}
}

package facts

import (
	"math"
	"testing"
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

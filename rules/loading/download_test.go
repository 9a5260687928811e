package loading

import (
	"math"
	"testing"
)

func TestBarBytes(t *testing.T) {
	for in, want := range map[string]float64{"4.60G": 4.6e9, "512M": 512e6, "1.00k": 1000, "2T": 2e12, "20": 0, "": 0, "G": 0, "-1G": 0, "x1M": 0, "InfG": 0} {
		if got, ok := barBytes(in); got != want && ok || ok != (want > 0) {
			t.Errorf("%q: %v, %v", in, got, ok)
		}
	}
}

func FuzzBarBytes(f *testing.F) {
	for _, s := range []string{"4.60G", "9", "", "NaNG", "1e400k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := barBytes(s); ok && (!(v > 0) || math.IsInf(v, 0)) {
			t.Errorf("%q is %v bytes", s, v)
		}
	})
}

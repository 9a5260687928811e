package python

import "testing"

// The exception tables of the same function, and their entries as dis shows
// them.
var exceptionTables = []struct {
	version, table string
	want           []handler
}{
	{"3.11", "830d410d0391153102a60b410d03b10c3d05bd03410d03c10d04411107c11401411107",
		[]handler{{3, 16, 77, 1}, {17, 38, 49, 1}, {38, 49, 77, 1}, {49, 61, 61, 2}, {61, 64, 77, 1}, {77, 81, 81, 3}, {84, 85, 81, 3}}},
	{"3.13", "8305412603880b41150693024126039611411a02a707412603c11505412603c11a09412305c12303412603c1260a413407",
		[]handler{{3, 8, 102, 1}, {8, 19, 85, 3}, {19, 21, 102, 1}, {22, 39, 90, 1}, {39, 46, 102, 1}, {85, 90, 102, 1}, {90, 99, 99, 2}, {99, 102, 102, 1}, {102, 112, 116, 3}}},
	{"3.14", "8b05412505900b4114089b024125059e11411904af07412505c11405412505c11909412207c12203412505c1250b413509",
		[]handler{{11, 16, 101, 2}, {16, 27, 84, 4}, {27, 29, 101, 2}, {30, 47, 89, 2}, {47, 54, 101, 2}, {84, 89, 101, 2}, {89, 98, 98, 3}, {98, 101, 101, 2}, {101, 112, 117, 4}}},
}

func TestExceptionTables(t *testing.T) {
	for _, c := range exceptionTables {
		table := bytesOf(t, c.table)
		for unit := range 150 {
			var want handler
			for _, h := range c.want {
				if unit >= h.start && unit < h.end {
					want = h
				}
			}
			if got, ok := handlerOf(table, unit); got != want || ok != (want != handler{}) {
				t.Errorf("%s: instruction %d has %+v, want %+v", c.version, unit, got, want)
			}
		}
	}
}

func FuzzExceptionTable(f *testing.F) {
	for _, c := range exceptionTables {
		f.Add(bytesOf(f, c.table), 20)
	}
	f.Fuzz(func(t *testing.T, table []byte, unit int) {
		if h, ok := handlerOf(table, unit); ok && (unit < h.start || unit >= h.end || h.depth < 0) {
			t.Errorf("%+v for %d", h, unit)
		}
	})
}

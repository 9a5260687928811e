package python

import (
	"encoding/hex"
	"testing"
)

// A function of 17 lines with a `with`, a list comprehension, a `try`, a `for`
// and a `while`, as each version compiles it; its lines by co_lines(): how many
// instructions, and their line.
var lineTables = []struct {
	version, table string
	want           [][2]int
}{
	{"3.10", "06010601020206fe02040401020206fe12051cf5080c0401020104ff02800402",
		[][2]int{{3, 2}, {3, 3}, {1, 5}, {3, 3}, {1, 7}, {2, 8}, {1, 10}, {3, 8}, {9, 13}, {14, 2}, {4, 14}, {2, 15}, {1, 16}, {2, 15}, {1, 0}, {2, 17}}},
	{"3.11", "8000d8090af0000b0510f0000b0510f002030d0af000030d0ae01516f005030d0af100030d0af400030d0a8801f008060910d80c0d8f448a44e01011f105030d0ef400030d0ef000030d0ef00a000d0e884189438c4388438843f88841884189438c4388438843f8f8f88843f0170b0510f0000b0510f0000b0510f1000b0510f4000b0510f0000b0510f0000b0510f0000b0510f0000b0510f0000b0510f0000b0510f8f8f8f0000b0510f0000b0510f0000b0510f0000b0510f018000e0ff000020511f0000205118801d80e0ff000010911d80c10f003000f10f000010911f8e00b0c8048",
		[][2]int{{1, 1}, {3, 2}, {2, 3}, {1, 5}, {9, 3}, {1, 7}, {12, 8}, {1, 10}, {8, 8}, {11, 13}, {1, 0}, {11, 13}, {3, 0}, {1, 13}, {16, 2}, {3, 0}, {4, 2}, {4, 14}, {2, 15}, {1, 16}, {2, 15}, {1, 0}, {2, 17}}},
	{"3.13", "8000da090af106001617f305030d0ae115169001f303000d0ed91516f00500090af000030d0af008060910d80c0d8f448944e01011f405030d0ef10a000d0e8d43f717000a0bf318000e0f8801df0e0f8861d80c10f703000f108a61f103000e0ff006000c0d8048f9f21d030d0af8f114000d0e8d43faf717000a0b8d11fa",
		[][2]int{{1, 1}, {3, 2}, {2, 5}, {4, 3}, {3, 5}, {4, 4}, {2, 5}, {2, 3}, {1, 7}, {11, 8}, {1, 10}, {5, 8}, {8, 13}, {8, 2}, {5, 14}, {9, 15}, {1, 16}, {11, 15}, {2, 14}, {2, 17}, {2, 0}, {3, 3}, {1, 0}, {8, 13}, {3, 0}, {14, 2}, {3, 0}}},
	{"3.14", "8000df090a8a11f106001617f305030d0ae115169001f303000d0ed91516f00500090af000030d0af008060910d80c0d8f448944e01011f405030d0ef10a000d0e8d43f717000a0bf318000e0f8801df0e0f8961d90c10f105000e0ff006000c0d8048f9f21d030d0af8f114000d0e8d43faf717000a0b8f11fa",
		[][2]int{{1, 1}, {11, 2}, {2, 5}, {4, 3}, {3, 5}, {4, 4}, {2, 5}, {2, 3}, {1, 7}, {11, 8}, {1, 10}, {5, 8}, {8, 13}, {8, 2}, {5, 14}, {10, 15}, {2, 16}, {2, 14}, {2, 17}, {2, 0}, {3, 3}, {1, 0}, {8, 13}, {3, 0}, {16, 2}, {3, 0}}},
}

func bytesOf(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestLineTables(t *testing.T) {
	for _, c := range lineTables {
		find := lineOf
		if c.version == "3.10" {
			find = lineOf310
		}
		table, unit := bytesOf(t, c.table), 0
		for _, run := range c.want {
			for range run[0] {
				if got := find(table, 1, unit); got != run[1] {
					t.Errorf("%s: instruction %d is in line %d, want %d", c.version, unit, got, run[1])
				}
				unit++
			}
		}
		if got := find(table, 1, unit); got != 0 {
			t.Errorf("%s: line %d behind the end", c.version, got)
		}
	}
}

func FuzzLineTable(f *testing.F) {
	for _, c := range lineTables {
		f.Add(bytesOf(f, c.table), 1, 20)
	}
	f.Fuzz(func(t *testing.T, table []byte, first, unit int) {
		for _, find := range []func([]byte, int, int) int{lineOf, lineOf310} {
			if n := find(table, first, unit); n < 0 || n > maxLine {
				t.Errorf("line %d", n)
			}
		}
	})
}

package serverlog

import "testing"

// Lines that differ in what is made anew each time are one and the same line.
func TestNormalIsTheSame(t *testing.T) {
	for _, pair := range [][2]string{
		{"waiting, poll id 5f0c9a1e-abcd-4eef-beef-aabbccddeeff", "waiting, poll id ffffcafe-1234-4321-face-0123456789ab"},
		{"Waiting for workers.", "Waiting for workers......."},
		{"id 5f0c9a1e tried 3 times", "id 77a0bbcc tried 12 times"},
	} {
		if a, b := string(normal([]byte(pair[0]))), string(normal([]byte(pair[1]))); a != b {
			t.Errorf("%q and %q", a, b)
		}
	}
	for _, pair := range [][2]string{{"TP0 loads", "TP1 loads"}, {"layer-abcd", "layer-abce"}, {"wait", "wait:"}} {
		if a, b := string(normal([]byte(pair[0]))), string(normal([]byte(pair[1]))); a == b {
			t.Errorf("%q is the same as %q", pair[0], pair[1])
		}
	}
}

package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

// The line ends below process 1, at a parent that cannot be read, and after
// maxAncestors where the table goes in a circle.
func TestAncestors(t *testing.T) {
	dir := procFixture(t, map[string]string{
		"stat":   "cpu  1 2 3\ncpu0 1\nbtime 1700000000\n",
		"1/stat": statLine(1, "systemd", 'S', 0, 1, 1), "60/stat": statLine(60, "sshd", 'S', 1, 1, 1),
		"70/stat": statLine(70, "nsys) (x", 'S', 60, 1, 1), "80/stat": statLine(80, "python3", 'S', 70, 1, 1),
		"90/stat": statLine(90, "python3", 'S', 91, 1, 1),
		"95/stat": statLine(95, "odd", 'S', 96, 1, 1), "96/stat": statLine(96, "odd", 'S', 95, 1, 1),
	})
	r, err := NewReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if diff := cmp.Diff([]evidence.Ancestor{{PID: 70, Name: "nsys) (x"}, {PID: 60, Name: "sshd"}}, r.Ancestors(80)); diff != "" {
		t.Error(diff)
	}
	for pid, n := range map[int]int{1: 0, 60: 0, 90: 0, 12345: 0, 95: maxAncestors} {
		if got := r.Ancestors(pid); len(got) != n {
			t.Errorf("process %d: %d ancestors, want %d: %v", pid, len(got), n, got)
		}
	}
}

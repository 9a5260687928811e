package process

import (
	"os"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/process/scenario"
)

func TestParseExecStart(t *testing.T) {
	text := "sleep (30653, #threads: 1)\n-------------------\nse.exec_start                                :      12888604.634429\nse.vruntime                                  :         94325.641410\n"
	if v, ok := parseExecStart([]byte(text)); !ok || v != 12888604.634429 {
		t.Errorf("%v %v", v, ok)
	}
	for _, bad := range []string{"", "se.exec_start", "se.exec_start : x\n", "se.exec_start : 0\n", "se.vruntime : 5\n"} {
		if v, ok := parseExecStart([]byte(bad)); ok {
			t.Errorf("%q became %v", bad, v)
		}
	}
}

func FuzzParseExecStart(f *testing.F) {
	f.Add([]byte("se.exec_start : 5.5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, ok := parseExecStart(b); ok && !(v > 0) {
			t.Errorf("%v", v)
		}
	})
}

// Deadlocked threads slept since they came to their locks.
func TestSinceWhen(t *testing.T) {
	if _, err := os.Stat("/proc/self/sched"); err != nil {
		t.Skip("this kernel has no /proc/PID/sched")
	}
	began := time.Now()
	s := scenario.Start(t, "abba")
	time.Sleep(300 * time.Millisecond)
	r := reader(t)
	procs := treeOf(t, r, s.PID)
	seen := 0
	for _, w := range waitsOf(t, r, procs) {
		if w.Futex == nil || w.Futex.Owner == nil {
			continue
		}
		seen++
		// The clocks of two processors differ by some milliseconds of interrupt
		// time, on a virtual machine by stolen time.
		if w.AsleepMS == nil {
			t.Fatalf("thread %d: not known", w.TID)
		}
		if ms := *w.AsleepMS; ms < 100 || ms > float64(time.Since(began).Milliseconds())+2000 {
			t.Errorf("thread %d asleep for %v ms, started %v ago", w.TID, ms, time.Since(began))
		}
	}
	if seen != 2 {
		t.Errorf("%d waits name an owner, want 2", seen)
	}
}

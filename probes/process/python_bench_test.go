package process

import (
	"context"
	"os/exec"
	"testing"

	"github.com/whyhang/whyhang/probes/process/scenario"
	"github.com/whyhang/whyhang/probes/python"
)

// BenchmarkPython131 reads 130 idle workers of a pool, each with ten frames,
// and the main thread, and what they wait for.
func BenchmarkPython131(b *testing.B) {
	if len(cpythons()) == 0 {
		b.Skip("no CPython")
	}
	for _, py := range cpythons() {
		b.Run(py.version, func(b *testing.B) {
			lockThread(b)
			s := scenario.StartCmd(b, nil, exec.Command(py.exe, pythonScript, "queue-idle", "129"))
			r := reader(b)
			procs := treeOf(b, r, s.PID)
			look, _ := r.Waits(context.Background(), procs)
			if len(look.Python) != 1 || len(look.Python[0].Threads) != 131 {
				b.Fatalf("%+v", look.Python)
			}
			m, err := r.openMemory(s.PID, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer m.close()
			at, version, ok := r.findPython(s.PID, 0, m.maps)
			if !ok {
				b.Fatal("no CPython found")
			}
			frames := 0
			for b.Loop() {
				read := python.Read(pythonMemory{m}, at, version, python.DefaultLimits)
				for _, w := range look.Waits {
					if w.Futex == nil || w.Futex.Timed {
						continue
					}
					c, _ := parseCall([]byte(w.A.Syscall))
					read.Lock(python.Wait{NSTID: w.TID, Addr: c.Args[0], SP: c.SP})
				}
				frames = 0
				for _, t := range read.Process.Threads {
					frames += len(t.Frames)
				}
			}
			b.ReportMetric(float64(frames), "frames")
		})
	}
}

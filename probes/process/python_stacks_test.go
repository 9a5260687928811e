package process

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestPythonDeepStack(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "deep", "300")
		_, threads, _ := s.look()
		if got := threads["descends"]; len(got.Frames) != 128 || !got.Truncated {
			t.Errorf("%d frames, truncated %v, want 128 of more", len(got.Frames), got.Truncated)
		}
	})
}

func TestPythonNames(t *testing.T) {
	eachPython(t, func(t *testing.T, py cpython) {
		s := startPython(t, py, "names")
		p, _, _ := s.look()
		for _, name := range []string{"é_latin", "λ_greek", "𐐷_deseret"} {
			want := evidence.PythonFrame{File: "/tmp/" + name + ".py", Function: name, Line: 2}
			if !slices.ContainsFunc(p.Threads, func(th evidence.PythonThread) bool { return slices.Contains(th.Frames, want) }) {
				t.Errorf("no frame %+v in %+v", want, p.Threads)
			}
		}
	})
}

// A program that runs while it is read: nothing fails, and every frame is one
// that it has.
func TestPythonBusy(t *testing.T) {
	const reads = 200
	source := map[string][2]int{}
	for _, f := range []string{"works", "computes", "calls", "<genexpr>", "until_input_ends", "rlock_busy", "gil_busy", "<module>", "start", "ready"} {
		source[f] = [2]int{1, line(t, "__main__", "mode(*map")}
	}
	source["works"] = [2]int{line(t, "def works", "def works"), line(t, "def works", "time.sleep")}
	source["computes"] = [2]int{line(t, "def computes", "def computes"), line(t, "def computes", "n = sum")}
	source["calls"] = [2]int{line(t, "def calls", "def calls"), line(t, "def calls", "return")}
	eachPython(t, func(t *testing.T, py cpython) {
		for _, mode := range []string{"rlock-busy", "gil-busy"} {
			s := startPython(t, py, mode, "12")
			frames, cut, unknown, gil, owned := 0, 0, 0, 0, 0
			for range reads {
				look, run := s.r.Waits(context.Background(), s.procs)
				if run.Status != evidence.OK {
					t.Fatalf("run %+v", run)
				}
				for _, w := range look.Waits {
					if w.Futex == nil || w.Futex.Python == nil {
						continue
					}
					if k := w.Futex.Python; k.Kind == evidence.PythonGILWait {
						gil++
					} else if k.OwnerTID != 0 {
						owned++
					}
				}
				for _, p := range look.Python {
					if p.Unread != "" {
						t.Errorf("unread: %s", p.Unread)
					}
					for _, th := range p.Threads {
						if th.TID == 0 {
							t.Errorf("no thread has ID %d", th.NSTID)
						}
						if th.Truncated {
							cut++
						}
						for _, f := range th.Frames {
							frames++
							if f.File == "" {
								unknown++
								continue
							}
							name := f.Function[strings.LastIndexByte(f.Function, '.')+1:]
							switch filepath.Base(f.File) {
							case filepath.Base(pythonScript):
								if lines, ok := source[name]; !ok || f.Line != 0 && (f.Line < lines[0] || f.Line > lines[1]) {
									t.Errorf("no such frame: %+v, of %v", f, lines)
								}
							case "threading.py":
							default:
								t.Errorf("no such file: %+v", f)
							}
						}
					}
				}
			}
			t.Logf("%s: %d reads, %d frames, %d of them unknown; %d stacks cut short; %d waits for the GIL, %d for an owned RLock", mode, reads, frames, unknown, cut, gil, owned)
			if frames < reads || unknown > frames/50 {
				t.Errorf("%d frames, %d unknown", frames, unknown)
			}
		}
	})
}

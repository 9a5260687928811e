package facts

import "github.com/whyhang/whyhang/probes/evidence"

// sample is one point of a progress curve.
type sample struct {
	s    float64 // seconds since the first frame
	done float64 // bytes
	at   []any
}

// bestCurve looks at every process and every way of counting, and keeps the
// one that came furthest: what a rank mapped and what it read are the same
// bytes seen twice.
func (w *WeightsDone) bestCurve(s *evidence.Snapshot) []sample {
	var best []sample
	take := func(pid int, how string, c []sample) {
		if len(c) == 0 {
			return
		}
		last := c[len(c)-1]
		if last.done > 0 && (best == nil || last.done > w.DoneBytes || steadyRate(best) == 0 && steadyRate(c) > 0) {
			best = c
			w.Known, w.DoneBytes, w.How, w.At, w.PID = true, last.done, how, last.at, pid
		}
	}
	sizes := sizesOf(s)
	for i := range s.Processes {
		p := &s.Processes[i]
		c := fileCurve(s, p, sizes)
		take(p.PID, "its offset or what is mapped in of it", c)
		if steadyRate(c) > 0 {
			continue
		}
		take(p.PID, "mapped file memory", mappedCurve(s, p))
		// pread moves neither offset nor mapping: read calls count all bytes,
		// those of other files among them.
		if len(p.Files) > 0 && steadyRate(best) == 0 {
			if c := readCurve(s, p); steadyRate(c) > 0 {
				take(p.PID, "read calls", c)
			}
		}
	}
	return best
}

// sizesOf are the sizes of the weight files, by path.
func sizesOf(s *evidence.Snapshot) map[string]float64 {
	sizes := map[string]float64{}
	if s.Weights != nil {
		for _, f := range s.Weights.Files {
			sizes[f.Path] = float64(f.SizeBytes)
		}
	}
	for i := range s.Processes {
		for _, f := range s.Processes[i].Files {
			if f.SizeBytes != nil {
				sizes[f.Path] = float64(*f.SizeBytes)
			}
		}
	}
	return sizes
}

// fileCurve adds up how far each weight file has come: the offset of its
// descriptor, or what is mapped in of it. A file that was held and is not any
// more has been read: loaders take one shard after another.
func fileCurve(s *evidence.Snapshot, p *evidence.Process, sizes map[string]float64) []sample {
	reached := map[string]float64{}
	for i := range p.Files {
		f := &p.Files[i]
		reached[f.Path] = furthest(reached[f.Path], f.PosBytes, f.ResidentBytes)
	}
	var curve []sample
	for n := range s.Frames {
		if s.Frames[n].During != "" {
			break
		}
		j := ProcessAt(&s.Frames[n], p.PID)
		if j < 0 || s.Frames[n].Processes[j].State == "" {
			continue
		}
		held := map[string]bool{}
		at := []any{"frames", n, "processes", j, "rss_file_bytes"}
		for k := range s.Frames[n].Processes[j].Files {
			f := &s.Frames[n].Processes[j].Files[k]
			held[f.Path] = true
			reached[f.Path] = furthest(reached[f.Path], f.PosBytes, f.ResidentBytes)
			at = []any{"frames", n, "processes", j, "files", k, "resident_bytes"}
			if f.ResidentBytes == nil || f.PosBytes != nil && *f.PosBytes >= *f.ResidentBytes {
				at[len(at)-1] = "pos_bytes"
			}
		}
		var done float64
		for path, bytes := range reached {
			if size := sizes[path]; !held[path] && size > 0 {
				bytes = size
				reached[path] = size
			}
			done += bytes
		}
		if done > 0 {
			curve = append(curve, sample{s.Frames[n].SinceMS / 1000, done, at})
		}
	}
	return curve
}

func furthest(so float64, counts ...*uint64) float64 {
	for _, c := range counts {
		if c != nil {
			so = max(so, float64(*c))
		}
	}
	return so
}

// mappedCurve is how much of the weight files is mapped in, by the RssFile of
// the whole process: for models too large to ask for each mapping. The growth
// is the model's; how much of the first value was is known only where it was
// asked for at discovery, else almost all of it is taken to be.
func mappedCurve(s *evidence.Snapshot, p *evidence.Process) []sample {
	var base float64
	mapped, asked := false, false
	for i := range p.Files {
		if p.Files[i].Mapped {
			mapped = true
			if p.Files[i].ResidentBytes != nil {
				base += float64(*p.Files[i].ResidentBytes)
				asked = true
			}
		}
	}
	if !mapped {
		return nil
	}
	var curve []sample
	var first float64
	for n := range s.Frames {
		j := ProcessAt(&s.Frames[n], p.PID)
		if s.Frames[n].During != "" || j < 0 || s.Frames[n].Processes[j].RSSFileBytes == nil {
			continue
		}
		rss := float64(*s.Frames[n].Processes[j].RSSFileBytes)
		if len(curve) == 0 {
			if first = rss; !asked {
				base = rss
			}
		}
		curve = append(curve, sample{s.Frames[n].SinceMS / 1000, base + rss - first, []any{"frames", n, "processes", j, "rss_file_bytes"}})
	}
	return curve
}

// readCurve is all that a process has read by read calls.
func readCurve(s *evidence.Snapshot, p *evidence.Process) []sample {
	var curve []sample
	for n := range s.Frames {
		j := ProcessAt(&s.Frames[n], p.PID)
		if s.Frames[n].During != "" || j < 0 || s.Frames[n].Processes[j].ReadCharBytes == nil {
			continue
		}
		curve = append(curve, sample{s.Frames[n].SinceMS / 1000, float64(*s.Frames[n].Processes[j].ReadCharBytes),
			[]any{"frames", n, "processes", j, "read_char_bytes"}})
	}
	return curve
}

// steadyRate is the rate of a curve in bytes per second. A loader that works
// in bursts (read a shard, convert it, read the next) is measured from the end
// of one burst to the end of a later one, so that the window need not fit the
// bursts.
func steadyRate(c []sample) float64 {
	rate, _ := rateOf(c)
	return rate
}

// rateOf also gives the rate's relative uncertainty: when a burst ended is
// known no better than the time between two looks.
func rateOf(c []sample) (rate, uncertainty float64) {
	if len(c) < 2 {
		return 0, 0
	}
	first, last := c[0], c[len(c)-1]
	if last.done <= first.done {
		return 0, 0
	}
	gap := (last.s - first.s) / float64(len(c)-1)
	var steps []sample // the points at which it had just grown
	for i := 1; i < len(c); i++ {
		if c[i].done > c[i-1].done {
			// It grew somewhere since the look before: in the middle, say.
			steps = append(steps, sample{s: (c[i].s + c[i-1].s) / 2, done: c[i].done})
		}
	}
	n := len(steps)
	if n < 2 {
		return (last.done - first.done) / (last.s - first.s), 1
	}
	between := steps[n-1].s - steps[0].s
	if n >= len(c)-2 {
		// It grows all the time.
		return (last.done - first.done) / (last.s - first.s), gap / (last.s - first.s)
	}
	return (steps[n-1].done - steps[0].done) / between, gap / between
}

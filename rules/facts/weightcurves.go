package facts

import "github.com/whyhang/whyhang/probes/evidence"

// sample is one point of a progress curve.
type sample struct {
	s    float64 // seconds since the first frame
	done float64 // bytes
	at   []any
}

// curveOf counts how far one process is, by the way of counting that shows it
// moving: what it mapped and what it read are the same bytes seen twice.
func curveOf(s *evidence.Snapshot, p *evidence.Process, sizes map[string]float64) ([]sample, string) {
	c, how := fileCurve(s, p, sizes), "its offset or what is mapped in of it"
	if steadyRate(c) > 0 {
		return c, how
	}
	better := func(other []sample, by string) {
		n, m := len(c), len(other)
		if m > 0 && other[m-1].done > 0 && (n == 0 || other[m-1].done > c[n-1].done || steadyRate(other) > 0) {
			c, how = other, by
		}
	}
	better(mappedCurve(s, p), "mapped file memory")
	// pread moves neither offset nor mapping: read calls count all bytes, those
	// of other files among them.
	if steadyRate(c) == 0 && len(p.Files) > 0 {
		if read := readCurve(s, p); steadyRate(read) > 0 {
			c, how = read, "read calls"
		}
	}
	return c, how
}

// sizesOf are the sizes of the weight files, by path.
func sizesOf(s *evidence.Snapshot) map[string]float64 {
	sizes := map[string]float64{}
	if s.Weights != nil {
		for _, f := range s.Weights.Files {
			sizes[f.Path] = float64(f.SizeBytes)
			if f.RealPath != "" {
				sizes[f.RealPath] = float64(f.SizeBytes)
			}
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
	before := -1.0
	for n := range s.Frames {
		if s.Frames[n].During != "" {
			break
		}
		j := ProcessAt(&s.Frames[n], p.PID)
		if j < 0 || s.Frames[n].Processes[j].State == "" {
			continue
		}
		if before < 0 {
			before = earlierShards(s, reached, s.Frames[n].Processes[j].Files)
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
		done := before
		for path, bytes := range reached {
			if size := sizes[path]; !held[path] && size > 0 {
				bytes = size
				reached[path] = size
			}
			done += bytes
		}
		if done > 0 && len(reached) > 0 {
			curve = append(curve, sample{s.Frames[n].SinceMS / 1000, done, at})
		}
	}
	return curve
}

// earlierShards are the bytes of the shards before the first one that the
// process had in its hands at the first look: engines take them in the order of
// their names and close what they have read. A process that holds the first
// shard, or all of them, has closed none.
func earlierShards(s *evidence.Snapshot, atDiscovery map[string]float64, now []evidence.FileFrame) float64 {
	if s.Weights == nil || len(s.Weights.Files) < 2 {
		return 0
	}
	holds := map[string]bool{}
	for path := range atDiscovery {
		holds[path] = true
	}
	for i := range now {
		holds[now[i].Path] = true
	}
	var before float64
	for i := range s.Weights.Files { // in the order of their names
		f := &s.Weights.Files[i]
		if holds[f.Path] || f.RealPath != "" && holds[f.RealPath] {
			return before
		}
		before += float64(f.SizeBytes)
	}
	return 0 // it holds none of them
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

package facts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// simulated is a load as it could be, and what there is to know about it.
type simulated struct {
	shape string
	// period and duty are of a loader that reads for duty of a period at full
	// speed and rests for the remainder.
	period, duty float64
	// ends is the share of the first rate that is left at the end.
	ends float64
	// jitter is the spread of each burst, rest and moment's rate.
	jitter  float64
	knows   string  // "log", "age", "nothing", or "late": its age misleads
	lasts   float64 // seconds, about
	started float64 // seconds from the start of the process to the first byte
}

// curve is the bytes read by time, in steps of tick seconds; the load ends at
// the last one. The rate while it reads is 1e9.
const tick = 0.04

func (l simulated) curve(r *rand.Rand) []float64 {
	var c []float64
	want := l.lasts * 1e9 * l.duty * (1 + l.ends) / 2
	jitter := func() float64 { return math.Exp(l.jitter * r.NormFloat64()) }
	var done, phase float64
	reads, left := true, l.period*l.duty*jitter()
	wave := 0.0
	for done < want {
		if l.duty < 1 {
			if left -= tick; left <= 0 {
				reads = !reads
				left = l.period * l.duty * jitter()
				if !reads {
					left = l.period * (1 - l.duty) * jitter()
				}
			}
		}
		if phase -= tick; phase <= 0 {
			wave, phase = 0.7*wave+0.7*l.jitter*r.NormFloat64(), 0.5
		}
		if reads {
			slower := 1 - (1-l.ends)*done/want
			done += 1e9 * tick * slower * math.Exp(wave)
		}
		c = append(c, math.Min(done, want))
	}
	return c
}

// watched is what the real watch would have seen from the second begin of the
// load on, and the truth at its end; looks like diagnose/watch.go.
func (l simulated) watched(c []float64, begin float64) (w WeightsDone, truth float64) {
	total := c[len(c)-1]
	at := func(s float64) float64 { return c[min(len(c)-1, max(0, int(s/tick)))] }
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := start.Add(time.Duration(l.started * 1e9)) // of the load
	size := uint64(total)
	p := evidence.Process{PID: 10, PPID: 1, Started: start, State: "S", Name: "loader",
		Files: []evidence.OpenFile{{Path: "/m/model.gguf", SizeBytes: &size, FD: 3}}}
	if l.knows == "log" || l.knows == "nothing" {
		p.Libraries = []string{"libpython3.12.so.1.0"}
	}
	s := &evidence.Snapshot{Processes: []evidence.Process{p}}
	if l.knows == "log" {
		s.Logs = []evidence.Log{l.log(c, begin, first, total)}
	}
	for since := 0.0; ; {
		pos := uint64(at(begin + since))
		s.Frames = append(s.Frames, evidence.Frame{At: first.Add(time.Duration((begin + since) * 1e9)), SinceMS: since * 1000,
			Processes: []evidence.ProcessFrame{{PID: 10, State: "S", Files: []evidence.FileFrame{{Path: "/m/model.gguf", FD: 3, PosBytes: &pos}}}}})
		s.Taken = s.Frames[len(s.Frames)-1].At
		if since >= 2 {
			if w = Of(s).WeightsDone; w.Moving() && w.Sure() || since >= 10 {
				break
			}
		}
		switch {
		case since == 0:
			since = 0.11
		case since < 3.1:
			since += 0.25
		default:
			since = math.Min(10, since+1)
		}
	}
	truth = float64(len(c))*tick - begin - s.Frames[len(s.Frames)-1].SinceMS/1000
	return w, truth
}

// log is a log of 20 shards at the second begin of the load.
func (l simulated) log(c []float64, begin float64, first time.Time, total float64) evidence.Log {
	log := evidence.Log{Marks: []evidence.Mark{{Signature: "x.weights.begin", Engine: "common", Phase: evidence.PhaseWeights, Kind: evidence.KindBegin, Count: 1,
		First: evidence.Hit{Line: 1, At: &first, Text: "Load weight begin."}}}}
	const shards = 20
	for n := shards; n > 0; n-- {
		i := sort.SearchFloat64s(c, total*float64(n)/shards)
		if seconds := float64(i) * tick; seconds < begin {
			log.Marks = append(log.Marks, evidence.Mark{Signature: "x.weights.bar", Engine: "common", Phase: evidence.PhaseWeights, Kind: evidence.KindProgress, Count: 1,
				First: evidence.Hit{Line: 2, Text: fmt.Sprintf("Loading shards: %d%% Completed | %d/%d [%02d:%02d<00:01, 2.00s/it]", 5*n, n, shards, int(seconds)/60, int(seconds)%60),
					Values: map[string]string{"percent": fmt.Sprint(5 * n), "done": fmt.Sprint(n), "total": fmt.Sprint(shards)}}})
			break
		}
	}
	return log
}

// simulations are the loads of a table's row.
func simulations() []simulated {
	var all []simulated
	add := func(l simulated) {
		for _, knows := range []string{"log", "age", "nothing", "late"} {
			l.knows, l.ends = knows, max(l.ends, 0.0001)
			all = append(all, l)
		}
	}
	for _, jitter := range []float64{0.02, 0.1} {
		add(simulated{shape: "steady", duty: 1, ends: 1, jitter: jitter})
		for _, period := range []float64{0.5, 1, 2, 4, 7, 10, 14, 20} {
			for _, duty := range []float64{0.35, 0.5, 0.7} {
				add(simulated{shape: "saw-tooth", period: period, duty: duty, ends: 1, jitter: jitter})
			}
		}
	}
	add(simulated{shape: "noisy", duty: 1, ends: 1, jitter: 0.25})
	add(simulated{shape: "slowing down", duty: 1, ends: 0.5, jitter: 0.05})
	add(simulated{shape: "slowing saw-tooth", period: 3, duty: 0.5, ends: 0.5, jitter: 0.1})
	return all
}

// score is a row of the table.
type score struct {
	runs, off, held, blind int
	worst, sum, width      float64
}

func (s *score) add(o score) {
	s.runs, s.off, s.held, s.blind, s.sum, s.width = s.runs+o.runs, s.off+o.off, s.held+o.held, s.blind+o.blind, s.sum+o.sum, s.width+o.width
	s.worst = max(s.worst, o.worst)
}

func (s *score) line() string {
	n := float64(max(1, s.runs))
	return fmt.Sprintf("%5d runs, error mean %4.1f %%, worst %5.1f %%, %4.1f %% above 25 %%; range held %5.1f %%, high is %.1f times low; saw nothing move %d", s.runs, 100*s.sum/n, 100*s.worst, 100*float64(s.off)/n, 100*float64(s.held)/n, math.Exp(s.width/n), s.blind)
}

// TestTimeLeft asks simulated loads at half time how long they have to go. It
// is statistics over fixed seeds. Where the log or the age of the process tells
// when the reading began, the error must be below 25 %, and where a Python server
// must be guessed to have imported for half a minute before it. Where the age of
// another program misleads, a window of 10 s can know no cycle longer than
// itself: then only steady loads must come out right, and of the others the range
// must say so.
func TestTimeLeft(t *testing.T) {
	rows := map[string]*score{}
	var names []string
	for i, l := range simulations() {
		r := rand.New(rand.NewPCG(uint64(i), 42))
		var s score
		for range 12 {
			l.lasts = 120 * math.Exp(r.Float64()*math.Log(8)) // 2 to 16 minutes
			l.started = 0.2 + 2*r.Float64()
			if l.knows != "age" {
				l.started = 15 + 40*r.Float64()
			}
			c := l.curve(r)
			w, truth := l.watched(c, float64(len(c))*tick/2)
			s.runs++
			if !w.Moving() {
				s.blind++
				s.runs--
				continue
			}
			off := math.Abs(w.ETA-truth) / truth
			s.sum += off
			s.width += math.Log(w.ETAHigh / w.ETALow)
			s.worst = max(s.worst, off)
			if off >= 0.25 {
				s.off++
			}
			if w.ETALow <= truth && truth <= w.ETAHigh {
				s.held++
			}
		}
		for _, name := range []string{fmt.Sprintf("%-18s %4.1f s %.2f, knows %s", l.shape, l.period, l.duty, l.knows), "all: " + l.shape + ", knows " + l.knows} {
			if rows[name] == nil {
				rows[name] = &score{}
				names = append(names, name)
			}
			rows[name].add(s)
		}
	}
	sort.Strings(names)
	var all score
	for _, name := range names {
		s := rows[name]
		t.Logf("%-52s %s", name, s.line())
		if name[:3] != "all" {
			continue
		}
		all.add(*s)
	}
	t.Logf("%-52s %s", "everything", all.line())
	if all.held*10 < all.runs*9 {
		t.Errorf("the range holds the truth in %d of %d", all.held, all.runs)
	}
	// How many of a hundred may be off by 25 % or more.
	for name, few := range map[string]int{"all: steady, knows log": 0, "all: steady, knows age": 0, "all: steady, knows nothing": 5, "all: steady, knows late": 10,
		"all: saw-tooth, knows log": 1, "all: saw-tooth, knows age": 1, "all: saw-tooth, knows nothing": 4} {
		s := rows[name]
		if s.off*100 > few*s.runs {
			t.Errorf("%s: an error of 25 %% or more in %d of %d", name, s.off, s.runs)
		}
		if s.held*10 < s.runs*9 {
			t.Errorf("%s: the range holds the truth in %d of %d", name, s.held, s.runs)
		}
	}
}

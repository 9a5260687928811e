package serverlog

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/whyhang/whyhang/probes/evidence"
)

// How much is kept of lines that come with numbers, such as a server's running
// requests and tokens per second: at most maxSamples lines a mark, which is an
// even number, of at most maxSampled marks.
const (
	maxSamples = 128
	maxSampled = 64
	// maxSampleText is how much of a line is kept from the known string on.
	maxSampleText = 512
)

// seriesNames are the groups of evidence.Signature.Series that are kept.
var seriesNames = []string{"running", "waiting", "tokens_per_s", "prompt_tokens_per_s", "kv_percent"}

// samples are every every-th line of a mark. Which lines those are depends on
// their number alone, so that a log gives the same ones however it is cut.
type samples struct {
	every int64
	lines []sample
}

// sample is a line as it was matched, without escapes. The text begins where
// the mark's prefix may name the time.
type sample struct {
	line int64
	text string
	at   int // where in text the known string stands
}

// wants says whether the count-th line of the mark is kept.
func (s *samples) wants(count int64) bool { return (count-1)%s.every == 0 }

// add keeps the count-th line. If there is no room, every second one of those
// kept goes, and from then on only half as many come.
func (s *samples) add(count int64, piece []byte, at int, line int64) {
	if len(s.lines) == maxSamples {
		for i := range maxSamples / 2 {
			s.lines[i] = s.lines[2*i]
		}
		s.lines = s.lines[:maxSamples/2]
		s.every *= 2
		if !s.wants(count) {
			return
		}
	}
	from, to := max(0, at-maxPrefix), min(len(piece), at+maxSampleText)
	s.lines = append(s.lines, sample{line: line, text: string(piece[from:to]), at: at - from})
}

func (s *samples) clone() *samples {
	if s == nil {
		return nil
	}
	return &samples{every: s.every, lines: slices.Clone(s.lines)}
}

// sampleFrom makes a mark keep samples if its signature has a series.
func (st *state) sampleFrom(c *catalogue, m *mark) {
	if c.signatures[m.signature].series == nil || st.sampled >= maxSampled {
		return
	}
	st.sampled++
	m.samples = &samples{every: 1}
}

// sampleAt keeps the hit at a position of the region, of which nothing is known
// but the mark.
func (st *state) sampleAt(r *region, m *mark, at int) {
	r.countTo(at)
	start, end := pieceAround(r.buf, at)
	m.samples.add(m.count, stripped(r.buf[start:end]), len(stripped(r.buf[start:at])), r.line+1)
}

// series is what the samples and the last line say; nil where they hold no
// number.
func (m *mark) series(c *catalogue) *evidence.Series {
	if m.samples == nil {
		return nil
	}
	s := &c.signatures[m.signature]
	all := m.samples.lines
	if n := len(all); m.count > 1 && (n == 0 || all[n-1].line != m.last.line) {
		from, to := max(0, m.last.at-maxPrefix), min(len(m.last.piece), m.last.at+maxSampleText)
		all = append(slices.Clone(all), sample{line: m.last.line, text: string(m.last.piece[from:to]), at: m.last.at - from})
	}
	series := &evidence.Series{Every: m.samples.every}
	for i := range all {
		values := numbers(s.series, all[i].text)
		if values == nil {
			continue
		}
		series.Points = append(series.Points, evidence.Point{
			Line: all[i].line, At: c.timeBefore([]byte(all[i].text[:all[i].at]), s.Engine), Values: values,
		})
	}
	if len(series.Points) == 0 {
		return nil
	}
	return series
}

// numbers are the named groups of a series' pattern in a line.
func numbers(pattern *regexp.Regexp, line string) map[string]float64 {
	groups := pattern.FindStringSubmatch(line)
	var values map[string]float64
	for i, name := range pattern.SubexpNames() {
		if groups == nil || !slices.Contains(seriesNames, name) || groups[i] == "" {
			continue
		}
		v, err := strconv.ParseFloat(groups[i], 64)
		if err != nil || !(v >= 0 && v < 1e15) {
			continue
		}
		if values == nil {
			values = map[string]float64{}
		}
		values[name] = v
	}
	return values
}

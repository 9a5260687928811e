package serverlog

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxRank is the length of a rank's name in bytes.
const maxRank = 48

// format is how the lines of one engine name rank and time.
type format struct {
	evidence.LineFormat
	rank, time           *regexp.Regexp
	rankGroup, timeGroup int
	yearless             bool
}

func newFormat(f evidence.LineFormat) (format, error) {
	compiled := format{LineFormat: f}
	var err error
	if f.Rank != "" {
		if compiled.rank, compiled.rankGroup, err = withGroup(f.Rank, "rank"); err != nil {
			return compiled, fmt.Errorf("line format of %s: %w", f.Engine, err)
		}
	}
	if f.Time != "" {
		if compiled.time, compiled.timeGroup, err = withGroup(f.Time, "time"); err != nil {
			return compiled, fmt.Errorf("line format of %s: %w", f.Engine, err)
		}
		compiled.yearless = !strings.Contains(f.Layout, "06")
	}
	return compiled, nil
}

// withGroup compiles an expression that must have a group of that name.
func withGroup(expression, name string) (*regexp.Regexp, int, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, 0, err
	}
	i := re.SubexpIndex(name)
	if i < 0 {
		return nil, 0, fmt.Errorf("%q has no group named %s", expression, name)
	}
	return re, i, nil
}

// rankBefore is the rank named nearest to the end of prefix: several processes
// may share one line. The engine's own format is asked first, then the others,
// as libraries print inside every engine's lines.
func (c *catalogue) rankBefore(prefix []byte, engine string) string {
	rank := ""
	c.ownThenOthers(engine, func(f *format) (int, bool) {
		if f.rank == nil {
			return 0, false
		}
		all := f.rank.FindAllSubmatchIndex(prefix, -1)
		if len(all) == 0 {
			return 0, false
		}
		last := all[len(all)-1]
		return last[1], true
	}, func(f *format) {
		all := f.rank.FindAllSubmatchIndex(prefix, -1)
		g := all[len(all)-1][2*f.rankGroup : 2*f.rankGroup+2]
		if g[0] >= 0 {
			rank = cutText(clean(prefix[g[0]:g[1]], 0), maxRank)
		}
	})
	return rank
}

// timeBefore is the time that stands nearest to the end of prefix, nil for
// none.
func (c *catalogue) timeBefore(prefix []byte, engine string) *time.Time {
	var at *time.Time
	c.ownThenOthers(engine, func(f *format) (int, bool) {
		if f.time == nil {
			return 0, false
		}
		all := f.time.FindAllIndex(prefix, -1)
		if len(all) == 0 {
			return 0, false
		}
		return all[len(all)-1][1], true
	}, func(f *format) {
		all := f.time.FindAllSubmatchIndex(prefix, -1)
		g := all[len(all)-1][2*f.timeGroup : 2*f.timeGroup+2]
		if g[0] >= 0 {
			at = c.parseTime(f, string(prefix[g[0]:g[1]]))
		}
	})
	return at
}

// ownThenOthers finds the format whose match ends last, among those of the
// engine, or, if none of them matches, among all, and uses it.
func (c *catalogue) ownThenOthers(engine string, match func(*format) (int, bool), use func(*format)) {
	for _, own := range []bool{true, false} {
		var best *format
		end := -1
		for i := range c.formats {
			f := &c.formats[i]
			if (f.Engine == engine) != own {
				continue
			}
			if e, ok := match(f); ok && e > end {
				best, end = f, e
			}
		}
		if best != nil {
			use(best)
			return
		}
	}
}

// parseTime reads a time stamp; nil if it is none.
func (c *catalogue) parseTime(f *format, s string) *time.Time {
	zone := c.zone
	if f.UTC {
		zone = time.UTC
	}
	t, err := time.ParseInLocation(f.Layout, s, zone)
	if err != nil {
		return nil
	}
	if f.yearless {
		// A day ahead is a clock or a zone that differs, not last year.
		at := func(year int) time.Time {
			return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone)
		}
		year := c.now.In(zone).Year()
		if t = at(year); t.After(c.now.Add(24 * time.Hour)) {
			t = at(year - 1)
		}
	}
	return &t
}

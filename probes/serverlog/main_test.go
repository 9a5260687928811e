package serverlog

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

var update = flag.Bool("update", false, "write testdata anew")

// logs is where the sample logs are, and the engines' signatures as a file.
const logs = "../../testdata/logs"

func TestMain(m *testing.M) {
	probes.ChildMain(map[string]func() probes.Handler{"log": childWithTraps})
	flag.Parse()
	os.Exit(m.Run())
}

// knownLines reads the engines' signatures, which the tests of the engines keep.
func knownLines(t testing.TB) (s setup) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(logs, "signatures.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// later is after everything in the sample logs.
var later = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func catalogueOf(t testing.TB, s setup) *catalogue {
	t.Helper()
	c, err := newCatalogue(s.Signatures, s.Formats, later, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// few are signatures for tests of the reading itself.
var few = setup{
	Signatures: []evidence.Signature{
		{ID: "e.starting.launch", Engine: "e", Phase: evidence.PhaseStarting, Kind: evidence.KindLaunch, Literal: "server starts"},
		{ID: "e.starting.args", Engine: "e", Phase: evidence.PhaseStarting, Kind: evidence.KindLaunch, Literal: "args are "},
		{ID: "e.weights.begin", Engine: "e", Phase: evidence.PhaseWeights, Kind: evidence.KindBegin, Literal: "load begins"},
		{ID: "e.weights.bar", Engine: "e", Phase: evidence.PhaseWeights, Kind: evidence.KindProgress, Literal: "loading shards", Pattern: `loading shards: +(?P<percent>\d+)% (?P<done>\d+)/(?P<total>\d+)`},
		{ID: "e.weights.end", Engine: "e", Phase: evidence.PhaseWeights, Kind: evidence.KindEnd, Literal: "load ends", Pattern: `load ends after (?P<seconds>\d+) s`},
		{ID: "e.ready.ready", Engine: "e", Phase: evidence.PhaseReady, Kind: evidence.KindReady, Literal: "is ready to serve"},
		{ID: "e.any.lock", Engine: "e", Kind: evidence.KindRetry, Literal: "lock not acquired"},
		{ID: "e.serving.batch", Engine: "e", Phase: evidence.PhaseServing, Kind: evidence.KindActivity, Literal: "decode batch"},
		{ID: "e.any.fault", Engine: "e", Kind: evidence.KindFatal, Literal: "KnownError: "},
	},
	Formats: []evidence.LineFormat{{
		Engine: "e", Rank: `\[\d\d:\d\d:\d\d(?P<rank>(?: [A-Z]+\d+)*)\]`,
		Time: `\[(?P<time>\d\d:\d\d:\d\d)[ \]]`, Layout: "15:04:05",
	}},
}

// scanText reads a text as a log.
func scanText(t testing.TB, s setup, text string) evidence.Log {
	t.Helper()
	return scanFrom(t, s, bytes.NewReader([]byte(text)))
}

func scanFrom(t testing.TB, s setup, r io.ReaderAt) evidence.Log {
	t.Helper()
	c := catalogueOf(t, s)
	res, err := newScanner(c).read(source{ReaderAt: r}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return told(t, c, res, r)
}

// told is a result as evidence, as the child makes it.
func told(t testing.TB, c *catalogue, res result, r io.ReaderAt) evidence.Log {
	t.Helper()
	log := evidence.Log{SizeBytes: res.size, Lines: res.lines}
	res.state.into(&log, c)
	res.endInto(&log, c, r)
	return log
}

// markOf is the mark of a signature and rank, or an empty one.
func markOf(log evidence.Log, signature, rank string) evidence.Mark {
	for _, m := range log.Marks {
		if m.Signature == signature && m.Rank == rank {
			return m
		}
	}
	return evidence.Mark{}
}

// childWithTraps is Child, but files of two names do to it what a dead mount and
// a bug would do.
func childWithTraps() probes.Handler {
	answer := Child()
	return func(ctx context.Context, q json.RawMessage, stage func(string)) (any, error) {
		if bytes.Contains(q, []byte("/stuck.log")) {
			stage("open the stuck one")
			select {}
		}
		if bytes.Contains(q, []byte("/crash.log")) {
			panic("crash")
		}
		return answer(ctx, q, stage)
	}
}

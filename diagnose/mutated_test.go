package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"testing"

	"github.com/whyhang/whyhang/diagnose/report"
)

// TestMutatedSnapshots breaks the snapshots of the corpus in thousands of ways,
// as a file from elsewhere may be broken: whatever can still be read is judged
// and shown in every format, without a crash.
func TestMutatedSnapshots(t *testing.T) {
	paths, err := filepath.Glob("../testdata/snapshots/*/snapshot.json")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var whole [][]byte
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(whole, b)
	}
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	judged := 0
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 7))
		i := r.IntN(len(whole))
		b := mutated(t, r, whole[i])
		if showsWithoutCrash(t, fmt.Sprintf("%s, seed %d", paths[i], seed), b) {
			judged++
		}
	}
	t.Logf("%d of %d mutations could be judged", judged, rounds)
	if judged < rounds/4 {
		t.Error("most mutations were refused: the test proves little")
	}
}

func showsWithoutCrash(t *testing.T, what string, b []byte) (judged bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s: %v\n%s", what, p, debug.Stack())
		}
	}()
	s, err := decode(bytes.NewReader(b))
	if err != nil {
		return false
	}
	r := report.New(Replay(s, ReplayOptions{}))
	var out bytes.Buffer
	for _, err := range []error{report.Text(&out, r, report.TextOptions{}), report.Markdown(&out, r), report.JSON(&out, r)} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	return true
}

// strange are values that stand where others are expected.
var strange = []any{nil, -1, 0, 1e308, float64(1<<63 - 1), -9.2e18, 1 << 31, "", "\x1b[31m\u202e\x00", []any{}, map[string]any{}, true,
	"2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", []any{nil}, 3.7, "-9223372036854775808"}

func mutated(t *testing.T, r *rand.Rand, whole []byte) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(whole, &v); err != nil {
		t.Fatal(err)
	}
	for range []int{1, 1, 1, 2, 3, 8}[r.IntN(6)] {
		v = mutate(r, v, 0)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mutate goes down a random path and breaks what it finds there.
func mutate(r *rand.Rand, v any, depth int) any {
	down := r.IntN(8) > 0 && depth < 12
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		k := keys[r.IntN(len(keys))]
		switch {
		case down:
			v[k] = mutate(r, v[k], depth+1)
		case r.IntN(2) == 0:
			delete(v, k)
		default:
			v[k] = stranger(r)
		}
		return v
	case []any:
		if len(v) == 0 {
			return v
		}
		i := r.IntN(len(v))
		switch {
		case down:
			v[i] = mutate(r, v[i], depth+1)
		case r.IntN(3) == 0:
			return v[:i]
		case r.IntN(2) == 0:
			return append(v[i:], v[:i]...)
		default:
			return append(v, v[i])
		}
		return v
	case float64:
		return []any{0, -1, -v, min(v*1000, 1e300), 1 << 31, float64(1 << 62), v + 1}[r.IntN(7)]
	}
	return stranger(r)
}

// stranger is one of the strange values, a copy of its own: it may be broken
// further, and must not come to hold itself.
func stranger(r *rand.Rand) any {
	switch v := strange[r.IntN(len(strange))].(type) {
	case []any:
		return append([]any{}, v...)
	case map[string]any:
		return map[string]any{}
	default:
		return v
	}
}

package counters

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func n(v float64) *float64 { return &v }

func TestMetrics(t *testing.T) {
	for engine, want := range map[string]evidence.CounterLook{
		"vllm":     {Running: n(3), Waiting: n(4), GeneratedTokens: n(150), PromptTokens: n(58), Steps: n(150), CacheUsage: n(0.5)},
		"sglang":   {Running: n(3), Waiting: n(0), GeneratedTokens: n(7557572), PromptTokens: n(8128902), Steps: n(900), CacheUsage: n(0.08)},
		"llamacpp": {Running: n(1), Waiting: n(0), GeneratedTokens: n(9), PromptTokens: n(41), Steps: n(12)},
		"tgi":      {Running: n(5), Waiting: n(2), GeneratedTokens: n(400), PromptTokens: n(37)},
		"triton":   {Waiting: n(3), GeneratedTokens: n(15)},
	} {
		b, err := os.ReadFile("../../testdata/counters/" + engine + ".metrics.txt")
		if err != nil {
			t.Fatal(err)
		}
		want.Engine = engine
		got, ok, err := parseMetrics(b)
		if diff := cmp.Diff(want, got); !ok || err != nil || diff != "" {
			t.Errorf("%s: %v, %v: %s", engine, ok, err, diff)
		}
	}
}

func TestOddMetrics(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		ok   bool
		run  *float64
	}{
		"empty":             {"", false, nil},
		"another program's": {"# TYPE go_goroutines gauge\ngo_goroutines 7\n", false, nil},
		"a page":            {"<html><body>hello</body></html>", false, nil},
		"no type":           {"vllm:num_requests_running 2\n", true, n(2)},
		"not a number":      {"vllm:num_requests_running NaN\nvllm:num_requests_waiting 1\n", true, nil},
		"below zero":        {"vllm:num_requests_running -1\nvllm:num_requests_waiting 1\n", true, nil},
		"cut off":           {"vllm:num_requests_running 2\nvllm:num_requests_waiting{engi", true, n(2)},
	} {
		look, ok, _ := parseMetrics([]byte(tc.text))
		if diff := cmp.Diff(tc.run, look.Running); ok != tc.ok || diff != "" {
			t.Errorf("%s: %v %s", name, ok, diff)
		}
	}
}

func TestSlots(t *testing.T) {
	for name, tc := range map[string]struct {
		text            string
		running, tokens *float64
	}{
		"idle (2026)":       {`[{"id":0,"n_ctx":4096,"is_processing":false,"next_token":[{"has_next_token":false,"n_remain":-1,"n_decoded":0}]}]`, n(0), n(0)},
		"one works (2026)":  {`[{"id":0,"is_processing":true,"next_token":[{"n_decoded":136}]},{"id":1,"is_processing":false}]`, n(1), n(136)},
		"an object (2025)":  {`[{"id":0,"is_processing":true,"next_token":{"n_decoded":12}}]`, n(1), n(12)},
		"a state (2024)":    {`[{"id":0,"state":1,"n_decoded":5},{"id":1,"state":0}]`, n(1), n(5)},
		"an error":          {`{"error":{"code":501,"message":"This server does not support slots endpoint."}}`, nil, nil},
		"no slots":          {`[]`, nil, nil},
		"something else":    {`[1,2]`, nil, nil},
		"not JSON":          {`ok`, nil, nil},
		"counts below zero": {`[{"is_processing":true,"n_decoded":-4}]`, n(1), nil},
	} {
		look, err := parseSlots([]byte(tc.text))
		if diff := cmp.Diff([]*float64{tc.running, tc.tokens}, []*float64{look.Running, look.GeneratedTokens}); diff != "" || (err == nil) != (tc.running != nil) {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestLoads(t *testing.T) {
	look, err := parseLoads([]byte(`{"timestamp":"2026-12-01T07:00:00+00:00","version":"0.5.23","loads":[` +
		`{"dp_rank":0,"num_running_reqs":2,"num_waiting_reqs":1,"num_used_tokens":300,"token_usage":0.1},{"dp_rank":1,"num_running_reqs":1,"num_waiting_reqs":0,"num_used_tokens":4,"token_usage":0.3}]}`))
	want := evidence.CounterLook{Engine: "sglang", Running: n(3), Waiting: n(1), GeneratedTokens: n(304), PerRequest: true, CacheUsage: n(0.3)}
	if diff := cmp.Diff(want, look); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	for _, text := range []string{"", "{}", `{"loads":[]}`, `{"loads":[{}]}`, `[]`, `{"loads":7}`} {
		if _, err := parseLoads([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// Whatever a server sends, a reading ends, and its numbers are counts.
func FuzzParsers(f *testing.F) {
	for _, engine := range []string{"vllm", "sglang", "llamacpp", "tgi", "triton"} {
		b, err := os.ReadFile("../../testdata/counters/" + engine + ".metrics.txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`[{"id":0,"is_processing":true,"next_token":[{"n_decoded":136}]}]`))
	f.Add([]byte(`{"loads":[{"num_running_reqs":2,"num_used_tokens":300,"token_usage":0.1}]}`))
	f.Add([]byte("vllm:num_requests_running{a=\"\xff\"} 1e308\nvllm:num_requests_running{a=\"b\"} 1e308\n" + strings.Repeat("# HELP x\n", 9)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range endpoints {
			look, ok, err := e.parse(b)
			if ok && err != nil {
				t.Fatalf("%s: ok and %v", e.path, err)
			}
			for _, v := range []*float64{look.Running, look.Waiting, look.GeneratedTokens, look.PromptTokens, look.CacheUsage} {
				if v != nil && !(*v >= 0 && *v < 1e30) {
					t.Fatalf("%s: a count of %v", e.path, *v)
				}
			}
		}
	})
}

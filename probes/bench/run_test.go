package bench

import (
	"context"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/chat/fakeserver"
	"github.com/whyhang/whyhang/probes/evidence"
)

func newServer(t testing.TB, m fakeserver.Model) *fakeserver.Server {
	t.Helper()
	s, err := fakeserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	m.ID = "m"
	s.Serve(m)
	return s
}

// measure runs a benchmark and checks what holds for every one.
func measure(t *testing.T, ctx context.Context, s *fakeserver.Server, o Options) (*evidence.Bench, evidence.ProbeRun) {
	t.Helper()
	o.Client, o.Model = &chat.Client{BaseURL: s.URL()}, "m"
	b, run := SingleStream(ctx, o)
	if _, err := json.Marshal(b); err != nil {
		t.Errorf("no JSON: %v", err)
	}
	if b.Complete == (b.Stopped != "") || b.Complete != (run.Status == evidence.OK) || run.Name != evidence.ProbeBench {
		t.Errorf("complete %v, stopped by %q, probe run %+v", b.Complete, b.Stopped, run)
	}
	st := b.SingleStream
	if st.Completed+st.Failed != st.NumPrompts || len(st.Errors) != st.NumPrompts || len(st.TTFTs) != st.Completed || len(st.OutputLens) != st.Completed {
		t.Errorf("%d prompts, %d completed, %d failed, %d errors, %d times", st.NumPrompts, st.Completed, st.Failed, len(st.Errors), len(st.TTFTs))
	}
	idle, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if !s.WaitIdle(idle) {
		t.Errorf("%d requests still run on the server", s.Running())
	}
	return b, run
}

// within says whether got is want give or take a factor: the machine that
// runs the tests may be busy.
func within(got, want, factor float64) bool { return got > want/factor && got < want*factor }

func TestSingleStream(t *testing.T) {
	for _, tc := range []struct {
		name   string
		model  fakeserver.Model
		source string
		itl    bool
		warns  string
	}{
		{"counts on every chunk", fakeserver.Model{}, countContinuous, true, ""},
		{"counts at the end", fakeserver.Model{Usage: fakeserver.UsageFinal}, countUsage, true, ""},
		{"llama.cpp", fakeserver.Model{Usage: fakeserver.UsageOnFinish, Timings: true}, countUsage, true, ""},
		{"does not count", fakeserver.Model{Usage: fakeserver.UsageNever}, countChunks, false, "does not count its tokens"},
		{"three tokens in a chunk", fakeserver.Model{ChunkTokens: 3}, countContinuous, false, "chunks hold several tokens"},
		{"refuses the extensions", fakeserver.Model{Refuse: []string{"continuous_usage_stats", "ignore_eos"}, Answer: strings.Repeat("word ", 300)}, countUsage, true, "refused or ignored the request field ignore_eos"},
		{"stops early", fakeserver.Model{NoIgnoreEOS: true, Answer: strings.Repeat(" word", 100)}, countContinuous, true, "3 of 3 streams ended before 256 tokens|([45]) of [45] streams"},
		{"thinks", fakeserver.Model{Reasoning: strings.Repeat("hm ", 100), ReasoningField: "reasoning"}, countContinuous, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.model.TTFT, tc.model.Rate = 50*time.Millisecond, 800
			s := newServer(t, tc.model)
			b, _ := measure(t, context.Background(), s, Options{Backend: "fake", Budget: time.Minute})
			st := b.SingleStream
			if !b.Complete || st.Completed < minStreams || st.Failed != 0 || st.MaxConcurrency != 1 || st.RequestRate != "inf" {
				t.Fatalf("%d completed, %d failed, stopped by %q, errors %q", st.Completed, st.Failed, b.Stopped, st.Errors)
			}
			if st.TokenCountSource != tc.source {
				t.Errorf("tokens counted by %q, want %q", st.TokenCountSource, tc.source)
			}
			if !within(st.DecodeTokS.Mean, 800, 2) || st.MeanTTFTMS < 50 || !within(st.MeanTPOTMS, 1.25, 2) {
				t.Errorf("%.1f tok/s, first token after %.1f ms, %.2f ms for a token", st.DecodeTokS.Mean, st.MeanTTFTMS, st.MeanTPOTMS)
			}
			if (st.MedianITLMS != nil) != tc.itl || (st.P99ITLMS != nil) != tc.itl {
				t.Errorf("times between tokens: %v", st.MedianITLMS)
			}
			if tc.model.Timings != (st.ServerTokS != nil) {
				t.Errorf("the server's own rate: %v", st.ServerTokS)
			}
			if warns := strings.Join(b.Warnings, "\n"); !regexp.MustCompile(tc.warns).MatchString(warns) {
				t.Errorf("warnings: %s", warns)
			}
			want := st.Completed * 256
			if tc.model.NoIgnoreEOS {
				want = st.Completed * 100
			}
			if tc.source != countChunks && st.TotalOutputTokens != want {
				t.Errorf("%d tokens, want %d", st.TotalOutputTokens, want)
			}
		})
	}
}

// What goes over the wire.
func TestRequests(t *testing.T) {
	s := newServer(t, fakeserver.Model{Rate: 4000})
	b, _ := measure(t, context.Background(), s, Options{})
	type body struct {
		Model     string
		Messages  []struct{ Content string }
		MaxTokens int  `json:"max_tokens"`
		IgnoreEOS bool `json:"ignore_eos"`
	}
	seen := map[string]bool{}
	if s.Most() != 1 {
		t.Errorf("%d requests at once", s.Most())
	}
	all := s.Requests()
	if len(all) != 1+b.SingleStream.NumPrompts {
		t.Errorf("%d requests for %d prompts and a warm-up", len(all), b.SingleStream.NumPrompts)
	}
	run := ""
	for i, r := range all {
		var q body
		if err := json.Unmarshal([]byte(r.Body), &q); err != nil {
			t.Fatal(err)
		}
		want := streamTokens
		if i == 0 {
			want = warmUpTokens
		}
		if q.MaxTokens != want || !q.IgnoreEOS || q.Model != "m" {
			t.Errorf("request %d: %s", i, r.Body)
		}
		id := regexp.MustCompile(`^whyhang-([0-9a-f]{8})-(\d+)$`).FindStringSubmatch(r.Header.Get("X-Request-Id"))
		if id == nil {
			t.Fatalf("x-request-id %q", r.Header.Get("X-Request-Id"))
		}
		if run == "" {
			run = id[1]
		}
		if id[1] != run || !strings.HasPrefix(q.Messages[0].Content, "["+run+"-"+id[2]+"] ") || seen[q.Messages[0].Content] {
			t.Errorf("request %d: id %s, prompt %.30q", i, id[0], q.Messages[0].Content)
		}
		seen[q.Messages[0].Content] = true
	}
}

// Broken streams are failures of their kind.
func TestFailedStreams(t *testing.T) {
	for _, tc := range []struct {
		name    string
		model   fakeserver.Model // after the warm-up
		kind    string
		partial bool
	}{
		{"stall", fakeserver.Model{Rate: 2000, StallAfter: 12}, "stall: the stream stalled after 12 tokens for", false},
		{"error in the stream", fakeserver.Model{Rate: 2000, FailAfter: 12}, "stream_error: the server sent an error after 12 tokens", false},
		{"aborted", fakeserver.Model{Rate: 2000, FinishReason: "abort"}, "aborted_by_server: ", false},
		{"one bad stream", fakeserver.Model{Rate: 2000, FailAfter: 12}, "stream_error: ", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, fakeserver.Model{Rate: 2000})
			good, bad := fakeserver.Model{ID: "m", Rate: 2000}, tc.model
			bad.ID = "m"
			b, run := measure(t, context.Background(), s, Options{Stall: time.Second, Progress: func(what string) {
				switch {
				case strings.Contains(what, "stream 2"):
					s.Serve(bad)
				case strings.Contains(what, "stream 3") && tc.partial:
					s.Serve(good)
				}
			}})
			st := b.SingleStream
			completed, failed := 1, 2
			if tc.partial {
				completed, failed = 2, 1
			}
			if st.Completed != completed || st.Failed != failed || b.Complete || run.Status != evidence.Partial {
				t.Errorf("%d completed, %d failed, stopped by %q, %s", st.Completed, st.Failed, b.Stopped, run.Status)
			}
			if st.Errors[0] != "" || !strings.HasPrefix(st.Errors[1], tc.kind) || !strings.Contains(b.Stopped, tc.kind) {
				t.Errorf("errors %q, stopped by %q", st.Errors, b.Stopped)
			}
			if diff := cmp.Diff(256*completed, st.TotalOutputTokens); diff != "" {
				t.Errorf("a broken stream counts as a short one: %s", diff)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		s := newServer(t, fakeserver.Model{})
		s.Close()
		b, run := SingleStream(context.Background(), Options{Client: &chat.Client{BaseURL: s.URL()}, Model: "m"})
		if b.Complete || !strings.Contains(b.Stopped, "the warm-up failed: connect_refused: ") || run.Status != evidence.Failed {
			t.Errorf("stopped by %q, %+v", b.Stopped, run)
		}
	})
}

// The budget and the operator end a run at any moment, on the server too.
func TestCutOff(t *testing.T) {
	slow := fakeserver.Model{Rate: 50}
	t.Run("budget in the warm-up", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, fakeserver.Model{Rate: 1})
		b, run := measure(t, context.Background(), s, Options{Budget: time.Second})
		if b.Stopped != "the budget of 1s ran out in the warm-up" || run.Status != evidence.Timeout || run.Hint == "" || s.Aborted() != 1 {
			t.Errorf("stopped by %q, %+v, %d aborted", b.Stopped, run, s.Aborted())
		}
	})
	t.Run("budget in a stream", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, slow)
		b, run := measure(t, context.Background(), s, Options{Budget: 3 * time.Second})
		st := b.SingleStream
		if b.Stopped != "the budget of 3s ran out in stream 1 of 3" || run.Status != evidence.Timeout || st.NumPrompts != 0 || s.Aborted() != 1 {
			t.Errorf("stopped by %q, %+v, %d prompts, %d aborted", b.Stopped, run, st.NumPrompts, s.Aborted())
		}
		if st.CutTokS == nil || !within(*st.CutTokS, 50, 2) {
			t.Errorf("rate of the cut stream %v", st.CutTokS)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		t.Parallel()
		s := newServer(t, fakeserver.Model{Rate: 2000})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		b, run := measure(t, ctx, s, Options{Progress: func(what string) {
			if strings.Contains(what, "stream 2") {
				s.Serve(fakeserver.Model{ID: "m", Rate: 1})
				time.AfterFunc(300*time.Millisecond, cancel)
			}
		}})
		if b.Stopped != "interrupted in stream 2 of 3" || run.Status != evidence.Partial || b.SingleStream.Completed != 1 || s.Aborted() != 1 {
			t.Errorf("stopped by %q, %+v, %d completed, %d aborted", b.Stopped, run, b.SingleStream.Completed, s.Aborted())
		}
	})
}

// Rates that scatter ask for more streams, as far as the budget goes.
func TestMoreStreams(t *testing.T) {
	s := newServer(t, fakeserver.Model{Rate: 1000})
	rates := map[string]float64{"stream 1": 300, "stream 2": 1200, "stream 3": 600, "stream 4": 300, "stream 5": 1200}
	b, _ := measure(t, context.Background(), s, Options{Budget: time.Minute, Progress: func(what string) {
		for stream, rate := range rates {
			if strings.Contains(what, stream) {
				s.Serve(fakeserver.Model{ID: "m", Rate: rate})
			}
		}
	}})
	if b.SingleStream.Completed != maxStreams || !strings.Contains(strings.Join(b.Warnings, "\n"), "scatter") {
		t.Errorf("%d streams, warnings %q", b.SingleStream.Completed, b.Warnings)
	}
}

// The names are those of vllm bench serve.
func TestKeyNames(t *testing.T) {
	s := newServer(t, fakeserver.Model{Rate: 4000})
	b, _ := measure(t, context.Background(), s, Options{})
	raw, err := json.Marshal(b.SingleStream)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput", "output_throughput",
		"total_token_throughput", "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms", "mean_tpot_ms", "mean_itl_ms", "p99_itl_ms", "mean_e2el_ms",
		"input_lens", "output_lens", "ttfts", "start_times", "errors", "max_concurrency", "request_rate", "num_prompts"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("no %s", k)
		}
	}
}

// BenchmarkTruth holds the measurement against a server whose speed is known:
// the errors of the decode rate in percent and of the first token in
// milliseconds. On a quiet machine they are below 1 and 10.
func BenchmarkTruth(b *testing.B) {
	const rate, ttft = 100.0, 150.0
	s := newServer(b, fakeserver.Model{Rate: rate, TTFT: time.Duration(ttft * float64(time.Millisecond))})
	var rateError, ttftError float64
	for b.Loop() {
		m, _ := SingleStream(context.Background(), Options{Client: &chat.Client{BaseURL: s.URL()}, Model: "m"})
		if !m.Complete {
			b.Fatal(m.Stopped)
		}
		rateError = max(rateError, 100*math.Abs(m.SingleStream.DecodeTokS.Mean-rate)/rate)
		ttftError = max(ttftError, math.Abs(m.SingleStream.MedianTTFTMS-ttft))
	}
	b.ReportMetric(rateError, "rate-error-%")
	b.ReportMetric(ttftError, "ttft-error-ms")
}

package chat

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
	"github.com/whyhang/whyhang/probes/evidence"
)

func newTestStream() *stream {
	_, cancel := context.WithCancelCause(context.Background())
	start := time.Now()
	return &stream{e: &evidence.Exchange{}, start: start, maxTokens: 256,
		watch: startWatch(Limits{}.withDefaults(), start, cancel)}
}

// newServer starts a fake server that ends with the test.
func newServer(t testing.TB) *fakeserver.Server {
	t.Helper()
	s, err := fakeserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

const chatPath = "/v1/chat/completions"

// asks plays a script as the answer to one question.
func asks(t *testing.T, limits Limits, script ...fakeserver.Step) evidence.Exchange {
	t.Helper()
	s := newServer(t)
	s.Script(chatPath, script)
	c := &Client{BaseURL: s.URL()}
	return c.Do(context.Background(), Request{Model: "m", Prompt: "p", MaxTokens: 32, Limits: limits})
}

// Building blocks of streams, in OpenAI's form.
const (
	role   = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	four   = `{"choices":[{"index":0,"delta":{"content":"4"},"finish_reason":null}]}`
	finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	use    = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	done   = "[DONE]"
)

func events(all ...string) (text string) {
	for _, e := range all {
		text += "data: " + e + "\n\n"
	}
	return text
}

func intp(n int) *int           { return &n }
func floatp(f float64) *float64 { return &f }

// Every way in which servers are known to stream.
func TestStreams(t *testing.T) {
	big := `{"choices":[{"index":0,"delta":{"content":"4"},"logprobs":"` + strings.Repeat("x", 128<<10) + `"}]}`
	for _, tc := range []struct {
		name, body string
		want       evidence.Exchange
	}{
		{"OpenAI", events(role, four, finish, use, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, PromptTokens: 9, CompletionTokens: 2, TokenCountSource: "usage", DoneSeen: true}},
		{"no [DONE] (ik_llama.cpp)", events(role, four, finish),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks"}},
		{"[DONE] without finish_reason", events(four, done),
			evidence.Exchange{Content: "4", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"keep-alives (TGI)", ": ping\n\n" + events(four) + ": ping\n\n" + events(finish, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", KeepAlives: 2, DoneSeen: true}},
		{"no space (TGI)", "data:" + four + "\n\ndata:" + finish + "\n\ndata:[DONE]\n\n",
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"CRLF and several data lines", "id: 1\r\ndata: {\"choices\":\r\ndata: [{\"delta\":{\"content\":\"4\"}}]}\r\n\r\ndata: " + finish + "\r\n\r\ndata: [DONE]\r\n\r\n",
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"content null in the role chunk, delta empty at the end, usage and timings on the finish chunk (llama.cpp)",
			events(`{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}`, four,
				`{"choices":[{"finish_reason":"length","index":0,"delta":{}}],"usage":{"completion_tokens":1,"prompt_tokens":43,"prompt_tokens_details":{"cached_tokens":0}},"timings":{"predicted_n":1,"predicted_per_second":69.2}}`, done),
			evidence.Exchange{Content: "4", FinishReason: "length", Chunks: 1, PromptTokens: 43, CompletionTokens: 1, CachedTokens: intp(0), TokenCountSource: "usage", ServerTokS: floatp(69.2), DoneSeen: true}},
		{"usage on every chunk (continuous_usage_stats)", events(
			`{"choices":[{"delta":{"role":"assistant"}}],"usage":{"prompt_tokens":9,"completion_tokens":0}}`,
			`{"choices":[{"delta":{"content":"a b c"}}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`,
			`{"choices":[{"delta":{"content":" d e"}}],"usage":{"prompt_tokens":9,"completion_tokens":5}}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":6}}`, done),
			evidence.Exchange{Content: "a b c d e", FinishReason: "stop", Chunks: 2, PromptTokens: 9, CompletionTokens: 6, FirstTokens: 3, LastTokens: 5, TokenCountSource: "usage_continuous", DoneSeen: true}},
		{"usage null on ordinary chunks", events(`{"choices":[{"delta":{"content":"4"}}],"usage":null}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}`, use, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, PromptTokens: 9, CompletionTokens: 2, TokenCountSource: "usage", DoneSeen: true}},
		{"choices null on the usage chunk", events(four, finish, `{"choices":null,"usage":{"prompt_tokens":1,"completion_tokens":1}}`, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, PromptTokens: 1, CompletionTokens: 1, TokenCountSource: "usage", DoneSeen: true}},
		{"choices missing on the usage chunk", events(four, finish, `{"usage":{"prompt_tokens":1,"completion_tokens":1}}`, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, PromptTokens: 1, CompletionTokens: 1, TokenCountSource: "usage", DoneSeen: true}},
		{"error null on ordinary chunks", events(`{"error":null,"choices":[{"delta":{"content":"4"}}]}`, finish, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"an extra chunk (SGLang sglext)", events(four, finish, `{"choices":[],"sglext":{"cached_tokens":1}}`, use, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, PromptTokens: 9, CompletionTokens: 2, TokenCountSource: "usage", DoneSeen: true}},
		{"reasoning_content (SGLang, llama.cpp)", events(`{"choices":[{"delta":{"reasoning_content":"2+2"}}]}`, `{"choices":[{"delta":{"reasoning_content":" is 4","content":null}}]}`, `{"choices":[{"delta":{},"finish_reason":"length"}]}`, done),
			evidence.Exchange{Reasoning: "2+2 is 4", ReasoningField: "reasoning_content", FinishReason: "length", Chunks: 2, TokenCountSource: "chunks", DoneSeen: true}},
		{"reasoning (vLLM, Ollama)", events(`{"choices":[{"delta":{"reasoning":"hm"}}]}`, four, finish, done),
			evidence.Exchange{Content: "4", Reasoning: "hm", ReasoningField: "reasoning", FinishReason: "stop", Chunks: 2, TokenCountSource: "chunks", DoneSeen: true}},
		{"both fields with the same text (vLLM 0.12-0.15)", events(`{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}`, four, finish, done),
			evidence.Exchange{Content: "4", Reasoning: "hm", ReasoningField: "reasoning_content", FinishReason: "stop", Chunks: 2, TokenCountSource: "chunks", DoneSeen: true}},
		{"fields of unexpected types", events(`{"id":7,"created":"x","choices":[{"delta":{"content":"4"},"logprobs":3,"index":"0"}],"usage":"none"}`, finish, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"an event of 128 KiB", events(big, finish, done),
			evidence.Exchange{Content: "4", FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
		{"NaN found by SGLang", events(`{"choices":[{"delta":{},"finish_reason":"stop","matched_stop":"NaN happened"}]}`, done),
			evidence.Exchange{FinishReason: "stop", MatchedStop: "NaN happened", DoneSeen: true, ErrorType: noTokens, Error: "the answer ended without any text"}},
		{"tool calls are tokens and no answer", events(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`, finish, done),
			evidence.Exchange{FinishReason: "stop", Chunks: 1, TokenCountSource: "chunks", DoneSeen: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Prompt, tc.want.MaxTokens, tc.want.HTTPStatus = "p", 32, 200
			times := cmpopts.IgnoreFields(evidence.Exchange{}, "ConnectMS", "HeadersMS", "TTFTMS", "LastMS", "E2ELMS", "GapsMS")
			for _, kind := range []string{"text/event-stream", "text/event-stream; charset=utf-8", "text/plain"} {
				got := asks(t, Limits{}, fakeserver.Head(200, kind), fakeserver.Send(tc.body))
				if diff := cmp.Diff(tc.want, got, times); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
			}
		})
	}
}

// A character that is cut by a read is whole in the text.
func TestSplitCharacter(t *testing.T) {
	body := events(`{"choices":[{"delta":{"content":"vier 😀"}}]}`, finish, done)
	cut := strings.Index(body, "😀") + 2
	e := asks(t, Limits{}, fakeserver.Stream(), fakeserver.Send(body[:cut]), fakeserver.Sleep(20*time.Millisecond), fakeserver.Send(body[cut:]))
	if e.Content != "vier 😀" || e.ErrorType != "" {
		t.Errorf("%q, %s", e.Content, e.ErrorType)
	}
}

// Chunked transfer encoding, whose chunks need not be events.
func TestChunkedTransfer(t *testing.T) {
	all := events(four, finish, done)
	for cut := 1; cut < len(all); cut += 7 {
		e := asks(t, Limits{}, fakeserver.ChunkedStream(), fakeserver.Chunk(all[:cut]), fakeserver.Chunk(all[cut:]), fakeserver.Chunk(""))
		if e.Content != "4" || !e.DoneSeen || e.ErrorType != "" {
			t.Fatalf("cut at %d: content %q, error %q %s", cut, e.Content, e.ErrorType, e.Error)
		}
	}
	// The transfer breaks off.
	e := asks(t, Limits{}, fakeserver.ChunkedStream(), fakeserver.Chunk(events(four)))
	if e.Content != "4" || e.ErrorType != truncated {
		t.Errorf("content %q, error %q %s", e.Content, e.ErrorType, e.Error)
	}
}

// A role-only chunk that comes early is no token, and neither is the usage.
func TestTimeToFirstToken(t *testing.T) {
	e := asks(t, Limits{}, fakeserver.Stream(), fakeserver.Event(role), fakeserver.Sleep(300*time.Millisecond),
		fakeserver.Event(four), fakeserver.Sleep(100*time.Millisecond), fakeserver.Event(four), fakeserver.Event(finish),
		fakeserver.Sleep(100*time.Millisecond), fakeserver.Event(use), fakeserver.Event(done))
	if e.HeadersMS >= e.TTFTMS || e.TTFTMS < 300 {
		t.Errorf("headers after %v ms, first token after %v ms; the server waited 300 ms between them", e.HeadersMS, e.TTFTMS)
	}
	if len(e.GapsMS) != 1 || e.GapsMS[0] < 90 || e.E2ELMS-e.LastMS < 90 {
		t.Errorf("gaps %v, last token after %v ms, end after %v ms", e.GapsMS, e.LastMS, e.E2ELMS)
	}
}

// Some servers keep the connection open after the answer.
func TestConnectionStaysOpen(t *testing.T) {
	for name, body := range map[string]string{
		"after [DONE]":                    events(four, finish, done),
		"after [DONE] without blank line": events(four, finish) + "data: [DONE]\n",
		"without [DONE]":                  events(four, finish, use),
	} {
		t.Run(name, func(t *testing.T) {
			e := asks(t, Limits{Request: time.Minute}, fakeserver.Stream(), fakeserver.Send(body), fakeserver.Stall())
			if e.ErrorType != "" || e.Content != "4" {
				t.Errorf("%s %s, content %q", e.ErrorType, e.Error, e.Content)
			}
			if e.E2ELMS >= 1000*endingGrace.Seconds() {
				t.Errorf("the wait for [DONE] counts: %v ms", e.E2ELMS)
			}
		})
	}
}

// A server that does not stream has answered all the same.
func TestWholeAnswer(t *testing.T) {
	e := asks(t, Limits{}, fakeserver.Head(200, "application/json"), fakeserver.Send(`{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"4"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`))
	if e.Content != "4" || e.ErrorType != "" || e.CompletionTokens != 2 {
		t.Errorf("%+v", e)
	}
}

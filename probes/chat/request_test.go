package chat

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
)

// The question of the incident, byte for byte what its operators sent but for
// stream.
func TestBody(t *testing.T) {
	plain := Request{Model: "/shared/kimi-k2.5-int4", Prompt: question, MaxTokens: 32}
	full := Request{Model: "m", Prompt: "p", MaxTokens: 256, IgnoreEOS: true, ContinuousUsage: true}
	without := func(r Request, fields ...string) Request { r.Without = fields; return r }
	for _, tc := range []struct {
		r    Request
		want string
	}{
		{plain, `{"model":"/shared/kimi-k2.5-int4","messages":[{"role":"user","content":"What is 2+2? Reply in one word."}],"max_tokens":32,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
		{full, `{"model":"m","messages":[{"role":"user","content":"p"}],"max_tokens":256,"temperature":0,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"ignore_eos":true}`},
		{without(full, fieldContinuous), `{"model":"m","messages":[{"role":"user","content":"p"}],"max_tokens":256,"temperature":0,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true}`},
		{without(full, fieldContinuous, fieldIgnoreEOS), `{"model":"m","messages":[{"role":"user","content":"p"}],"max_tokens":256,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`},
		{without(full, fieldContinuous, fieldIgnoreEOS, fieldUsage), `{"model":"m","messages":[{"role":"user","content":"p"}],"max_tokens":256,"temperature":0,"stream":true}`},
	} {
		if diff := cmp.Diff(tc.want, tc.r.body()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestFallbacks(t *testing.T) {
	for _, tc := range []struct {
		name   string
		refuse []string
		want   []string
	}{
		{"takes all", nil, nil},
		{"continuous_usage_stats", []string{fieldContinuous}, []string{fieldContinuous}},
		{"ignore_eos", []string{fieldIgnoreEOS}, []string{fieldContinuous, fieldIgnoreEOS}},
		{"all extensions", []string{fieldContinuous, fieldIgnoreEOS, fieldUsage}, []string{fieldContinuous, fieldIgnoreEOS, fieldUsage}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.Serve(fakeserver.Model{ID: "m", Answer: "4", Refuse: tc.refuse})
			c := &Client{BaseURL: s.URL() + "/v1/"}
			r := Request{Model: "m", Prompt: "p", MaxTokens: 4, IgnoreEOS: true, ContinuousUsage: true}
			e := c.Do(context.Background(), r)
			if e.ErrorType != "" {
				t.Fatalf("%s: %s", e.ErrorType, e.Error)
			}
			if diff := cmp.Diff(tc.want, e.Fallbacks); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got, want := len(s.Requests()), len(tc.want)+1; got != want || c.Sent() != want {
				t.Errorf("%d requests, %d counted, want %d", got, c.Sent(), want)
			}
			// What is known to be refused is not sent again.
			r.Without = e.Fallbacks
			before := c.Sent()
			if e = c.Do(context.Background(), r); e.ErrorType != "" || c.Sent() != before+1 {
				t.Errorf("%d more requests, error %q", c.Sent()-before, e.ErrorType)
			}
		})
	}
	t.Run("a refusal for another reason", func(t *testing.T) {
		s := newServer(t)
		s.Script(chatPath, fakeserver.Body(http.StatusUnprocessableEntity, "application/json", `{"detail":[{"loc":["body"],"msg":"prompt too long"}]}`))
		c := &Client{BaseURL: s.URL()}
		e := c.Do(context.Background(), Request{Prompt: "p", MaxTokens: 4, IgnoreEOS: true, ContinuousUsage: true})
		if e.ErrorType != http4xx || e.Error != `it answers HTTP 422, "prompt too long"` || c.Sent() != 4 {
			t.Errorf("%s %q after %d requests", e.ErrorType, e.Error, c.Sent())
		}
	})
}

func TestErrorText(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`: "Loading model",
		`{"error":"Unauthorized"}`:                               "Unauthorized",
		`{"object":"error","message":"no","code":404}`:           "no",
		`{"detail":"Not Found"}`:                                 "Not Found",
		`{"detail":[{"loc":["body","x"],"msg":"Extra inputs"}]}`: "Extra inputs",
		`{"error":"unhealthy","error_type":"healthcheck"}`:       "unhealthy",
		`{"status":"not_ready","stage":"x"}`:                     `{"status":"not_ready","stage":"x"}`,
		"  LLM is unavailable. Please check the server logs.\n":  "LLM is unavailable. Please check the server logs.",
		`{"error":{"error":{"error":"deep"}}}`:                   "deep",
		`{"error":{"message":`:                                   `{"error":{"message":`,
		"":                                                       "",
	} {
		if got := errorText([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func FuzzErrorText(f *testing.F) {
	f.Add(`{"error":{"message":"x"}}`)
	f.Add(`{"detail":[{"msg":"x"}]}`)
	f.Add(strings.Repeat(`{"error":`, 300))
	f.Fuzz(func(t *testing.T, body string) {
		if got := errorText([]byte(body)); len(got) > 6*len(body)+8 {
			t.Errorf("%d bytes of %d", len(got), len(body))
		}
	})
}

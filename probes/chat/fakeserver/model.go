package fakeserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Usage says how the model reports its token counts.
type Usage int

// The ways servers report usage.
const (
	UsageAsked    Usage = iota // final and on every chunk as the request asks (vLLM, SGLang)
	UsageFinal                 // a last chunk without choices, if asked
	UsageOnFinish              // on the chunk with finish_reason, asked or not (llama.cpp)
	UsageNever
)

// Model is a model whose every trait is known. Tokens are words.
type Model struct {
	ID string
	// Answer is the text; Answers, if set, makes it of the prompt. Reasoning
	// comes first, in the field ReasoningField (default reasoning_content).
	Answer         string
	Answers        func(prompt string) string
	Reasoning      string
	ReasoningField string
	// TTFT is the time to the first token; Rate the tokens per second after
	// it, 0 for no pause at all; ChunkTokens how many tokens one chunk holds.
	TTFT        time.Duration
	Rate        float64
	ChunkTokens int
	Usage       Usage
	// Timings adds llama.cpp's object of that name.
	Timings bool
	// FinishReason overrides "stop" and "length".
	FinishReason string
	// Refuse are request fields that are answered with 400.
	Refuse []string
	// NoIgnoreEOS: ignore_eos is accepted and has no effect.
	NoIgnoreEOS bool
	// StallAfter and FailAfter stop or break the stream after so many tokens;
	// 0 for never.
	StallAfter, FailAfter int
	// Key, if not empty, is required on /v1 paths.
	Key string
}

type chatRequest struct {
	Model     string                     `json:"model"`
	Messages  []struct{ Content string } `json:"messages"`
	MaxTokens int                        `json:"max_tokens"`
	Stream    bool                       `json:"stream"`
	IgnoreEOS bool                       `json:"ignore_eos"`
	Options   struct {
		IncludeUsage bool `json:"include_usage"`
		Continuous   bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
}

// Serve lets the server be m: /health, /v1/models and /v1/chat/completions.
func (s *Server) Serve(m Model) {
	if m.ReasoningField == "" {
		m.ReasoningField = "reasoning_content"
	}
	m.ChunkTokens = max(m.ChunkTokens, 1)
	s.Handle("/health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	s.Handle("/v1/models", m.guard(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"id": m.ID, "object": "model"}}})
	}))
	s.Handle("/v1/chat/completions", m.guard(func(w http.ResponseWriter, r *http.Request) { s.complete(m, w, r) }))
}

func (m Model) guard(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if m.Key != "" && r.Header.Get("Authorization") != "Bearer "+m.Key {
			writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
			return
		}
		h(w, r)
	}
}

func (s *Server) complete(m Model, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // in memory already
	var q chatRequest
	if err := json.Unmarshal(body, &q); err != nil || len(q.Messages) == 0 {
		refuse(w, http.StatusBadRequest, "not a chat request")
		return
	}
	for _, field := range m.Refuse {
		if strings.Contains(string(body), `"`+field+`"`) {
			refuse(w, http.StatusBadRequest, "Extra inputs are not permitted: "+field)
			return
		}
	}
	if q.Model != m.ID {
		refuse(w, http.StatusNotFound, fmt.Sprintf("The model `%s` does not exist.", q.Model))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	g := &generation{Model: m, w: w, ctx: r.Context(), closing: s.closing, q: q, began: time.Now()}
	g.run()
	if r.Context().Err() != nil {
		s.abort()
	}
}

// generation is one answer being streamed.
type generation struct {
	Model
	w       http.ResponseWriter
	ctx     context.Context
	closing <-chan struct{}
	q       chatRequest
	began   time.Time
	tokens  int // sent so far
}

func (g *generation) run() {
	g.chunk(map[string]any{"role": "assistant", "content": ""}, "")
	words, reasoning, finish := g.plan()
	for i := 0; i < len(words); i = g.tokens {
		// Absolute times, so that no delay adds up.
		due := g.TTFT
		if g.Rate > 0 {
			due += time.Duration(float64(i) / g.Rate * float64(time.Second))
		}
		end, field := min(i+g.ChunkTokens, len(words)), "content"
		if i < reasoning {
			end, field = min(end, reasoning), g.ReasoningField
		}
		if g.StallAfter > 0 && end > g.StallAfter {
			due = 24 * time.Hour
		}
		if !g.sleepUntil(g.began.Add(due)) {
			return
		}
		if g.FailAfter > 0 && end > g.FailAfter {
			g.send(map[string]any{"error": map[string]any{"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}})
			fmt.Fprint(g.w, "data: [DONE]\n\n")
			return
		}
		g.tokens = end
		g.chunk(map[string]any{field: strings.Join(words[i:end], "")}, "")
	}
	g.chunk(map[string]any{}, finish)
	if g.q.Options.IncludeUsage && (g.Usage == UsageAsked || g.Usage == UsageFinal) {
		g.send(map[string]any{"object": "chat.completion.chunk", "choices": []any{}, "usage": g.usage()})
	}
	fmt.Fprint(g.w, "data: [DONE]\n\n")
}

// plan is the tokens to send, how many of them are reasoning, and the
// finish_reason.
func (g *generation) plan() (words []string, reasoning int, finish string) {
	text := g.Answer
	if g.Answers != nil {
		text = g.Answers(g.q.Messages[0].Content)
	}
	words = append(tokens(g.Reasoning), tokens(text)...)
	reasoning = len(tokens(g.Reasoning))
	finish = "stop"
	limit := g.q.MaxTokens
	if limit > 0 && g.q.IgnoreEOS && !g.NoIgnoreEOS {
		for len(words) < limit {
			words = append(words, fmt.Sprintf(" more%d", len(words)))
		}
	}
	if limit > 0 && len(words) >= limit {
		words, finish = words[:limit], "length"
	}
	if g.FinishReason != "" {
		finish = g.FinishReason
	}
	return words, min(reasoning, len(words)), finish
}

// tokens cuts text into words, each with the space before it.
func tokens(s string) []string {
	var all []string
	for s != "" {
		end := strings.IndexByte(s[1:], ' ') + 1
		if end <= 0 {
			end = len(s)
		}
		all = append(all, s[:end])
		s = s[end:]
	}
	return all
}

func (g *generation) chunk(delta map[string]any, finish string) {
	choice := map[string]any{"index": 0, "delta": delta, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	c := map[string]any{"id": "chatcmpl-fake", "object": "chat.completion.chunk", "model": g.ID, "choices": []any{choice}}
	if g.Usage == UsageAsked && g.q.Options.Continuous || g.Usage == UsageOnFinish && finish != "" {
		c["usage"] = g.usage()
	}
	if finish != "" && g.Timings {
		c["timings"] = map[string]any{"predicted_n": g.tokens, "predicted_per_second": g.Rate}
	}
	g.send(c)
}

func (g *generation) usage() map[string]any {
	prompt := len(strings.Fields(g.q.Messages[0].Content))
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": g.tokens, "total_tokens": prompt + g.tokens}
}

func (g *generation) send(v any) {
	b, _ := json.Marshal(v) // maps of strings and numbers
	fmt.Fprintf(g.w, "data: %s\n\n", b)
	_ = http.NewResponseController(g.w).Flush()
}

func (g *generation) sleepUntil(t time.Time) bool {
	if wait := time.Until(t); wait > 0 {
		select {
		case <-time.After(wait):
		case <-g.ctx.Done():
			return false
		case <-g.closing:
			return false
		}
	}
	return g.ctx.Err() == nil
}

func refuse(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": text, "code": status}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	b, _ := json.Marshal(v)
	_, _ = w.Write(b)
}

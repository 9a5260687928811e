package chat

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Request is one question.
type Request struct {
	Model     string
	Prompt    string
	MaxTokens int
	// IgnoreEOS asks for all of MaxTokens; ContinuousUsage for a token count
	// on every chunk. Both are extensions of vLLM and SGLang.
	IgnoreEOS       bool
	ContinuousUsage bool
	// Without are fields that the server is known to refuse: the Fallbacks of
	// an earlier Exchange.
	Without []string
	// ID is sent as x-request-id, to be found in the server's log.
	ID     string
	Limits Limits

	// heard is called for every sign of life, from the reading goroutine.
	heard func()
}

// The request fields that a server may refuse, in the order in which they are
// given up: the least common first.
const (
	fieldContinuous = "continuous_usage_stats"
	fieldIgnoreEOS  = "ignore_eos"
	fieldUsage      = "stream_options"
)

// optional are the fields of r that could be dropped next, in order.
func (r *Request) optional() []string {
	var fields []string
	if r.ContinuousUsage {
		fields = append(fields, fieldContinuous)
	}
	if r.IgnoreEOS {
		fields = append(fields, fieldIgnoreEOS)
	}
	fields = append(fields, fieldUsage)
	return slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(r.Without, f) })
}

// body is the JSON of the request.
func (r *Request) body() string {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type streamOptions struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats,omitempty"`
	}
	has := r.optional()
	body := struct {
		Model         string         `json:"model"`
		Messages      []message      `json:"messages"`
		MaxTokens     int            `json:"max_tokens"`
		Temperature   float64        `json:"temperature"`
		Stream        bool           `json:"stream"`
		StreamOptions *streamOptions `json:"stream_options,omitempty"`
		IgnoreEOS     bool           `json:"ignore_eos,omitempty"`
	}{
		Model:     r.Model,
		Messages:  []message{{"user", r.Prompt}},
		MaxTokens: r.MaxTokens,
		Stream:    true,
		IgnoreEOS: slices.Contains(has, fieldIgnoreEOS),
	}
	if slices.Contains(has, fieldUsage) {
		body.StreamOptions = &streamOptions{IncludeUsage: true, ContinuousUsageStats: slices.Contains(has, fieldContinuous)}
	}
	b, _ := json.Marshal(body) // strings, numbers and bools: cannot fail
	return string(b)
}

// Do asks and reads the answer to its end. A field of the request that the
// server refuses with 400 or 422 is dropped and the question sent again; the
// times are those of the last attempt. Do ends when ctx does, and closes the
// connection, which cancels the request on the server. A failure is in the
// Exchange.
func (c *Client) Do(ctx context.Context, r Request) evidence.Exchange {
	e, _ := c.ask(ctx, r)
	return e
}

// answer is the text of an exchange as it came, for judging. It may hold
// secrets.
type answer struct {
	content, reasoning string
	// refusal is the text of an error body; redirect where a redirect leads.
	refusal, redirect string
}

func (c *Client) ask(ctx context.Context, r Request) (evidence.Exchange, answer) {
	r.Limits = r.Limits.withDefaults()
	r.Without = slices.Clone(r.Without)
	for {
		e, a := c.attempt(ctx, &r)
		e.Fallbacks = r.Without
		fields := r.optional()
		refused := e.HTTPStatus == 400 || e.HTTPStatus == 422
		if !refused || len(fields) == 0 || ctx.Err() != nil || aboutModel.MatchString(a.refusal) {
			return e, a
		}
		r.Without = append(r.Without, fields[0])
	}
}

// host is the server's host and port, for texts.
func (c *Client) host() string {
	u, err := c.base()
	if err != nil {
		return "the server"
	}
	return strings.TrimSpace(u.Host)
}

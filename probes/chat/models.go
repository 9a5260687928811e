package chat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits of the small questions before the chat.
const (
	healthLimit = 1500 * time.Millisecond
	modelsLimit = 3 * time.Second
	maxModels   = 50
	maxModelID  = 512
)

// health is the status of GET /health, 0 if none came in time, and its text.
// SGLang sleeps a second before it answers, and takes 20 to say no.
func (c *Client) health(ctx context.Context) (status int, body string, f *failure) {
	status, b, f := c.get(ctx, "/health", healthLimit, maxRefusal)
	return status, errorText(b), f
}

// ListsModels says whether the server lists its models and does not call itself
// unhealthy: engines that load answer 503, or nothing. SGLang lists its models
// from the moment it listens, and answers 503 to /health until its warm-up is
// over; a question would wait in its queue until then.
func (c *Client) ListsModels(ctx context.Context) bool {
	if _, status := c.models(ctx); status != http.StatusOK {
		return false
	}
	status, _, f := c.health(ctx)
	return f != nil || status != http.StatusServiceUnavailable
}

// models are the ids of GET /v1/models in the server's order, and its status.
func (c *Client) models(ctx context.Context) (ids []string, status int) {
	status, b, f := c.get(ctx, "/v1/models", modelsLimit, maxWhole)
	if f != nil || status != http.StatusOK {
		return nil, status
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	// What could be read of an odd list is of use as well.
	_ = json.Unmarshal(b, &list)
	for _, m := range list.Data {
		if m.ID != "" && len(m.ID) <= maxModelID && len(ids) < maxModels {
			ids = append(ids, m.ID)
		}
	}
	return ids, status
}

// get asks for a small body within limit.
func (c *Client) get(ctx context.Context, path string, limit time.Duration, size int64) (status int, body []byte, f *failure) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, failuref(headersTimeout, "GET %s: no answer within %s", path, seconds(limit)))
	defer cancel()
	request, err := c.newRequest(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0, nil, failuref(connectFailed, "%s", err)
	}
	c.sent.Add(1)
	response, err := c.transport().Do(request)
	if err != nil {
		var limit *failure
		if errors.As(context.Cause(ctx), &limit) {
			return 0, nil, limit
		}
		return 0, nil, transportFailure(err, c.host())
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, size))
	if err != nil && ctx.Err() != nil {
		// A status without its body is an answer all the same.
		return response.StatusCode, nil, nil
	}
	return response.StatusCode, body, nil
}

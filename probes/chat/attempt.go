package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Limits of what is read, in bytes.
const (
	maxRefusal = 2 << 10  // of an error body
	maxWhole   = 1 << 20  // of an answer that is no stream
	maxStream  = 64 << 20 // of a stream
)

// attempt sends r once.
func (c *Client) attempt(ctx context.Context, r *Request) (evidence.Exchange, answer) {
	e := evidence.Exchange{Prompt: r.Prompt, MaxTokens: r.MaxTokens}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, cancelWhole := context.WithTimeout(ctx, r.Limits.Request)
	defer cancelWhole()

	start := time.Now()
	w := startWatch(r.Limits, start, cancel)
	defer w.stop()
	response, connected, f := c.send(ctx, r, w)
	e.ConnectMS = milliseconds(connected)
	if f != nil {
		e.ErrorType, e.Error = f.kind, c.clean(f.says, maxText)
		e.E2ELMS = milliseconds(time.Since(start))
		return e, answer{}
	}
	defer response.Body.Close()
	e.HTTPStatus = response.StatusCode
	e.HeadersMS = milliseconds(time.Since(start))
	if response.StatusCode != http.StatusOK {
		return c.refused(e, response, w, start)
	}
	w.enter(awaitingToken)
	s := &stream{e: &e, start: start, watch: w, heard: r.heard, maxTokens: r.MaxTokens}
	f = s.read(ctx, response)
	s.finish(f)
	if f != nil {
		e.ErrorType, e.Error = f.kind, c.clean(f.says, maxText)
	}
	a := answer{content: s.content.String(), reasoning: s.reasoning.String()}
	e.Content, e.Reasoning = c.clean(a.content, maxText), c.clean(a.reasoning, maxText)
	e.FinishReason, e.MatchedStop = c.clean(s.finishReason, 64), c.clean(s.matchedStop, 64)
	return e, a
}

// send posts the question and waits for the headers. connected is how long the
// connection took, 0 if there was none.
func (c *Client) send(ctx context.Context, r *Request, w *watch) (*http.Response, time.Duration, *failure) {
	var connected atomic.Int64
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(int64(w.elapsed()))
		w.enter(awaitingHeaders)
	}}
	request, err := c.newRequest(httptrace.WithClientTrace(ctx, trace), http.MethodPost, "/v1/chat/completions", strings.NewReader(r.body()))
	if err != nil {
		return nil, 0, failuref(connectFailed, "%s", err)
	}
	request.Header.Set("Accept", "text/event-stream, application/json")
	if r.ID != "" {
		request.Header.Set("x-request-id", r.ID)
	}
	c.sent.Add(1)
	response, err := c.transport().Do(request)
	took := time.Duration(connected.Load())
	if err == nil {
		return response, took, nil
	}
	if ctx.Err() != nil {
		return nil, took, contextFailure(ctx, w)
	}
	return nil, took, transportFailure(err, c.host())
}

// statusSays is the sentence about an answer that is not 200.
func (c *Client) statusSays(status int, body string) string {
	if body == "" {
		return fmt.Sprintf("it answers HTTP %d", status)
	}
	if strings.HasPrefix(strings.TrimSpace(body), "<") {
		// Web servers put a page there; its number says it all.
		return fmt.Sprintf("it answers HTTP %d with a web page", status)
	}
	return fmt.Sprintf("it answers HTTP %d, %s", status, c.quote(body, 300))
}

// refused reads the body of an answer that is not 200.
func (c *Client) refused(e evidence.Exchange, response *http.Response, w *watch, start time.Time) (evidence.Exchange, answer) {
	w.enter(ending)
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // what came is what there is
	a := answer{refusal: errorText(body), redirect: response.Header.Get("Location")}
	kind := badHTTP
	switch response.StatusCode / 100 {
	case 3:
		kind = http3xx
	case 4:
		kind = http4xx
	case 5:
		kind = http5xx
	}
	e.ErrorType, e.Error = kind, c.statusSays(response.StatusCode, a.refusal)
	e.E2ELMS = milliseconds(time.Since(start))
	return e, a
}

// read takes the answer apart as it comes. The time of a token is that of the
// read that brought it, taken before any decoding.
func (s *stream) read(ctx context.Context, response *http.Response) *failure {
	buf := make([]byte, 32<<10)
	total, isStream := 0, strings.Contains(response.Header.Get("Content-Type"), "text/event-stream")
	for {
		n, err := response.Body.Read(buf)
		at := time.Now()
		total += n
		b := buf[:n]
		if !isStream && n > 0 {
			// Some send a stream under another name, some no stream at all.
			if head := bytes.TrimLeft(b, " \r\n\t"); len(head) > 0 {
				if head[0] == '{' || head[0] == '<' || head[0] == '[' {
					return s.whole(ctx, b, response.Body)
				}
				isStream = true
			}
		}
		more, tooBig := s.parser.feed(b, at, s.event)
		switch {
		case !more:
			return s.failure
		case tooBig != nil:
			return failuref(badJSON, "%s", tooBig)
		case total > maxStream:
			return failuref(tooLong, "the stream is longer than %d MiB, cut off after %s", maxStream>>20, s.count())
		case err == nil:
			continue
		case errors.Is(err, io.EOF), s.watch.complete():
			// Once the answer is there, how the connection ends is of no
			// matter.
			s.atEnd = true
			s.parser.end(at, s.event)
			return s.ended(response.Header.Get("Content-Type"))
		case ctx.Err() != nil:
			return contextFailure(ctx, s.watch)
		}
		return failuref(truncated, "the stream broke off after %s: %s", s.count(), innermost(err))
	}
}

// whole reads an answer that is no stream: an error with status 200, a
// completion of a server that does not stream, or something else.
func (s *stream) whole(ctx context.Context, head []byte, rest io.Reader) *failure {
	more, err := io.ReadAll(io.LimitReader(rest, maxWhole))
	if ctx.Err() != nil {
		return contextFailure(ctx, s.watch)
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return failuref(truncated, "the answer broke off: %s", innermost(err))
	}
	body := append(bytes.Clone(head), more...)
	var c chunk
	if err := decode(body, &c); err != nil {
		return failuref(notOpenAI, "it answers HTTP 200 with something else than a chat completion")
	}
	s.chunk(&c, time.Now())
	return s.ended("")
}

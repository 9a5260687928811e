package chat

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxGaps limits the gaps that are kept.
const maxGaps = 4096

// stream puts the events of one answer together.
type stream struct {
	e         *evidence.Exchange
	start     time.Time
	watch     *watch
	heard     func()
	maxTokens int

	parser             parser
	content, reasoning strings.Builder
	finishReason       string
	matchedStop        string
	failure            *failure
	// last is when the last text came, end when the last event of use came.
	last, end time.Time
	// answered: something of this interface was seen. counted is how many
	// chunks with choices carried usage. atEnd: no more bytes follow.
	answered bool
	counted  int
	atEnd    bool
	scratch  chunk
}

// event takes one event; false ends the stream.
func (s *stream) event(e event) (more bool) {
	if s.heard != nil {
		s.heard()
	}
	s.watch.heard()
	if e.field == "error" || e.name == "error" {
		s.fail(errorText(e.data))
		return false
	}
	switch data := bytes.TrimSpace(e.data); {
	case len(data) == 0:
		return true
	case bytes.Equal(data, doneMark):
		s.e.DoneSeen, s.end = true, e.at
		s.watch.enter(ending)
		s.failure = s.ended("text/event-stream")
		return false
	}
	if err := decode(e.data, &s.scratch); err != nil {
		if s.atEnd {
			return false // cut in half: the stream is truncated, not malformed
		}
		s.failure = failuref(badJSON, "after %s an event could not be read: %s", s.count(), err)
		return false
	}
	return s.chunk(&s.scratch, e.at)
}

// chunk takes one chunk in the order that matters: an error first, then usage,
// then the choice.
func (s *stream) chunk(c *chunk, at time.Time) (more bool) {
	if text, failed := c.failed(); failed {
		s.fail(text)
		return false
	}
	if c.Usage != nil {
		s.answered = true
		s.usage(c.Usage)
		if len(c.Choices) > 0 {
			s.counted++
		}
	}
	if c.Timings != nil && c.Timings.PredictedPerSecond > 0 {
		rate := c.Timings.PredictedPerSecond
		s.e.ServerTokS = &rate
	}
	s.end = at
	if len(c.Choices) == 0 {
		return true
	}
	s.answered = true
	choice := &c.Choices[0]
	d := &choice.Delta
	if choice.Message != nil {
		d = choice.Message
	}
	reasoning, field := d.reasoning()
	if d.Content != "" || reasoning != "" || d.toolText() {
		keep(&s.content, d.Content)
		keep(&s.reasoning, reasoning)
		if s.e.ReasoningField == "" {
			s.e.ReasoningField = field
		}
		s.text(at, c.Usage)
	}
	if len(choice.MatchedStop) > 0 && string(choice.MatchedStop) != "null" {
		s.matchedStop = strings.Trim(string(choice.MatchedStop), `"`)
	}
	if choice.FinishReason != "" {
		s.finishReason = choice.FinishReason
		// Usage and [DONE] may still follow.
		s.watch.enter(ending)
	}
	if limit := 8*s.maxTokens + 64; s.e.Chunks > limit {
		s.failure = failuref(tooLong, "it did not stop at %d tokens, cut off after %s", s.maxTokens, s.count())
		return false
	}
	return true
}

// text marks the time of a chunk with text.
func (s *stream) text(at time.Time, u *usage) {
	since := milliseconds(at.Sub(s.start))
	if s.e.Chunks == 0 {
		s.e.TTFTMS = since
	} else if len(s.e.GapsMS) < maxGaps {
		s.e.GapsMS = append(s.e.GapsMS, milliseconds(at.Sub(s.last)))
	}
	s.e.Chunks++
	s.last, s.e.LastMS = at, since
	if u != nil {
		if s.e.Chunks == 1 {
			s.e.FirstTokens = u.CompletionTokens
		}
		s.e.LastTokens = u.CompletionTokens
	}
	n, unit := s.progress()
	s.watch.token(at, n, unit)
}

// usage takes a count. It is cumulative: the last one wins, unless it is a
// null that became zeros.
func (s *stream) usage(u *usage) {
	s.e.PromptTokens = max(u.PromptTokens, s.e.PromptTokens)
	s.e.CompletionTokens = max(u.CompletionTokens, s.e.CompletionTokens)
	if u.Details != nil && u.Details.CachedTokens != nil {
		cached := *u.Details.CachedTokens
		s.e.CachedTokens = &cached
	}
}

// progress is how far the answer has come, and in what that is counted.
func (s *stream) progress() (n int, unit string) {
	if s.e.CompletionTokens > 0 {
		return s.e.CompletionTokens, "token"
	}
	// Most servers send one token in a chunk, but not all.
	return s.e.Chunks, "chunk"
}

func (s *stream) count() string {
	n, unit := s.progress()
	return counted(n, unit)
}

func (s *stream) fail(text string) {
	if text == "" {
		text = "no reason given"
	}
	s.failure = failuref(streamError, "the server sent an error after %s: %s", s.count(), text)
}

// ended says whether a stream that came to its end is a whole answer.
func (s *stream) ended(contentType string) *failure {
	switch {
	case s.failure != nil:
		return s.failure
	case slices.Contains([]string{"abort", "error"}, s.finishReason):
		return failuref(abortedByServer, "the server ended the answer with finish_reason %q after %s", s.finishReason, s.count())
	case s.finishReason != "" || s.e.DoneSeen && s.answered:
		if s.e.Chunks == 0 {
			return failuref(noTokens, "the answer ended without any text")
		}
		return nil
	case !s.answered && !strings.Contains(contentType, "text/event-stream"), !s.answered && s.e.DoneSeen, !s.answered && !s.end.IsZero():
		return failuref(notOpenAI, "it answers HTTP 200 with something else than a chat completion")
	}
	return failuref(truncated, "the stream ended after %s, without finish_reason and without [DONE]", s.count())
}

// finish sets what is only known at the end, f being how it ended.
func (s *stream) finish(f *failure) {
	e := s.e
	// A whole answer ends with its last event, even if the connection stays
	// open.
	if s.end.IsZero() || f != nil {
		s.end = time.Now()
	}
	e.E2ELMS = milliseconds(s.end.Sub(s.start))
	e.KeepAlives = s.parser.comments
	switch {
	case e.CompletionTokens > 0 && s.counted > 1 && e.FirstTokens > 0:
		e.TokenCountSource = "usage_continuous"
	case e.CompletionTokens > 0:
		e.TokenCountSource = "usage"
	case e.Chunks > 0:
		e.TokenCountSource = "chunks"
	}
	if e.TokenCountSource != "usage_continuous" {
		e.FirstTokens, e.LastTokens = 0, 0
	}
}

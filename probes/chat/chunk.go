package chat

import (
	"bytes"
	"encoding/json"
	"errors"
)

// chunk is what whyhang reads of one chunk of a streamed chat completion, or
// of a whole one. Field names: OpenAI's API, and next to them what the engines
// add. Everything may be absent or null.
type chunk struct {
	// Error is the failure of a stream that began with HTTP 200 (vLLM, SGLang,
	// LMDeploy).
	Error json.RawMessage `json:"error"`
	// Object is "error" in the older form of the same, with Message.
	Object  string   `json:"object"`
	Message string   `json:"message"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	Timings *timings `json:"timings"`

	use usage // what Usage points to
}

type choice struct {
	FinishReason string `json:"finish_reason"`
	// MatchedStop is SGLang's: a string or the number of a token.
	MatchedStop json.RawMessage `json:"matched_stop"`
	Delta       delta           `json:"delta"`
	// Message stands in place of Delta in an answer that is no stream.
	Message *delta `json:"message"`
}

type delta struct {
	Content string `json:"content"`
	// ReasoningContent is SGLang's, llama.cpp's and older vLLM's field,
	// Reasoning newer vLLM's and Ollama's.
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
	ToolCalls        []struct {
		Function struct {
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	// Details: absent unless the server was told to count (vLLM
	// --enable-prompt-tokens-details, SGLang --enable-cache-report).
	Details *struct {
		CachedTokens *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// timings is llama.cpp's own measurement of the request.
type timings struct {
	PredictedPerSecond float64 `json:"predicted_per_second"`
}

// decode reads one chunk. Fields of an unexpected type are left out, as
// servers take liberties with the ones that do not matter; the error is text
// that is no JSON object. c is valid until the next call, and only as long as
// data is.
func decode(data []byte, c *chunk) error {
	if json.Valid(data) {
		c.reset()
		if scan(data, c) {
			return nil
		}
	}
	c.reset()
	err := json.Unmarshal(data, c)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return nil
	}
	return err
}

// reset empties the chunk and keeps its memory.
func (c *chunk) reset() {
	choices := c.Choices[:cap(c.Choices)]
	clear(choices)
	*c = chunk{Choices: choices[:0]}
}

// failed says whether the chunk is an error, and its text.
func (c *chunk) failed() (string, bool) {
	if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
		return errorText(c.Error), true
	}
	if c.Object == "error" {
		return c.Message, true
	}
	return "", false
}

// reasoning is the reasoning text and the field it came in. Servers that fill
// both fields put the same text into both.
func (d *delta) reasoning() (text, field string) {
	if d.ReasoningContent != "" {
		return d.ReasoningContent, "reasoning_content"
	}
	if d.Reasoning != "" {
		return d.Reasoning, "reasoning"
	}
	return "", ""
}

// toolText is the arguments of tool calls: tokens, but no answer.
func (d *delta) toolText() bool {
	for i := range d.ToolCalls {
		if d.ToolCalls[i].Function.Arguments != "" {
			return true
		}
	}
	return false
}

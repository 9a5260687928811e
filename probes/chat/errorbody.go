package chat

import (
	"encoding/json"
	"regexp"
	"strings"
)

// errorText finds the sentence in an error body. The shapes are OpenAI's
// {"error":{"message":…}}, {"error":"…"} (Ollama, SGLang's middleware),
// {"message":…} (older vLLM), FastAPI's {"detail":…} with text or a list, and
// plain text. Anything else is returned as it is.
func errorText(body []byte) string {
	var shape struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	var text string
	switch {
	case json.Unmarshal(body, &text) == nil:
		return text
	case json.Unmarshal(body, &shape) != nil:
		return strings.TrimSpace(string(body))
	case shape.Message != "":
		return shape.Message
	case present(shape.Error):
		return errorText(shape.Error)
	case present(shape.Detail):
		var list []struct {
			Message string `json:"msg"`
			Where   []any  `json:"loc"`
		}
		if json.Unmarshal(shape.Detail, &list) == nil && len(list) > 0 && list[0].Message != "" {
			return list[0].Message
		}
		return errorText(shape.Detail)
	}
	return strings.TrimSpace(string(body))
}

func present(m json.RawMessage) bool { return len(m) > 0 && string(m) != "null" }

// What error bodies are about. Wordings: llama.cpp "Loading model", Dynamo
// {"status":"not_ready"}, LMDeploy "initializing"; SGLang "The request queue
// is full", Ollama "server busy, please try again", TGI "Model is overloaded";
// vLLM "The model `x` does not exist", Ollama "model \"x\" not found"; vLLM
// "The model does not support Chat Completions API" and the complaint of
// transformers about a missing chat template.
var (
	aboutLoading = regexp.MustCompile(`(?i)\bloading\b|\bstarting\b|\bwarm(ing)?[ -]?up\b|initializ|initialis|not[ _]ready|unavailable until`)
	aboutLoad    = regexp.MustCompile(`(?i)queue is full|overloaded|too many|server busy|at capacity|maximum pending`)
	aboutModel   = regexp.MustCompile(`(?i)model.{0,300}(not exist|not found|no such|unknown|not available|not served)|(unknown|invalid|no such) model`)
	aboutChat    = regexp.MustCompile(`(?i)chat template|not support.{0,40}chat|chat.{0,40}not supported`)
)

package serverlog

import "strings"

// prompts are strings after which a log line holds what a user sent or got:
// request logging of SGLang (Receive/Finish), of vLLM (Received request,
// Generated response), and the fields of request objects and bodies. What
// follows them on the line is neither kept nor searched: a prompt may quote any
// log line.
var prompts = []string{
	"Receive: obj=", "Finish: obj=",
	"Received request ", "Generated response ",
	"GenerateReqInput(", "EmbeddingReqInput(", "prompt_token_ids", "input_ids=[",
	"prompt: '", `prompt: "`, "'prompt': ", `"prompt": `, `"prompt":"`,
	"'content': ", `"content": `, `"content":"`,
	"'messages': [", `"messages": [`, `"messages":[`,
	", text='", `, text="`, "'text': ", `"text": `, `"text":"`,
}

// withoutPrompt is the text up to the first prompt in it.
func withoutPrompt(s string) string {
	end := len(s)
	for _, p := range prompts {
		if i := strings.Index(s, p); i >= 0 {
			end = min(end, i+len(p))
		}
	}
	if end == len(s) {
		return s
	}
	return s[:end] + "…"
}

package evidence

// Exchange is one request to the server and what came back.
type Exchange struct {
	// Prompt is whyhang's own text; MaxTokens its limit.
	Prompt    string `json:"prompt"`
	MaxTokens int    `json:"max_tokens"`
	// HTTPStatus is 0 when no answer line came.
	HTTPStatus int `json:"http_status"`
	// ErrorType is empty or one of connect_refused connect_timeout
	// connect_failed tls closed bad_http http_3xx http_4xx http_5xx
	// headers_timeout ttft_timeout stall stream_error truncated no_tokens
	// bad_json not_openai too_long aborted_by_server request_timeout
	// interrupted. They are explained in probes/chat/failure.go.
	ErrorType string `json:"error_type,omitempty"`
	Error     string `json:"error,omitempty"`
	// Content and Reasoning are the text, cut to 2,000 bytes; Reasoning came
	// in the field ReasoningField.
	Content        string `json:"content"`
	Reasoning      string `json:"reasoning,omitempty"`
	ReasoningField string `json:"reasoning_field,omitempty"`
	FinishReason   string `json:"finish_reason,omitempty"`
	// MatchedStop is what SGLang says ended the answer, such as "NaN happened".
	MatchedStop string `json:"matched_stop,omitempty"`
	// Times from just before the POST: connected, headers, first and last text
	// (content or reasoning; a role-only chunk does not count), end.
	ConnectMS float64 `json:"connect_ms,omitempty"`
	HeadersMS float64 `json:"headers_ms,omitempty"`
	TTFTMS    float64 `json:"ttft_ms,omitempty"`
	LastMS    float64 `json:"last_token_ms,omitempty"`
	E2ELMS    float64 `json:"e2el_ms,omitempty"`
	// PromptTokens and CompletionTokens are the server's usage, 0 if it gave
	// none; Chunks counts chunks with text. TokenCountSource is
	// "usage_continuous", "usage" or "chunks".
	PromptTokens     int    `json:"prompt_tokens,omitempty"`
	CompletionTokens int    `json:"completion_tokens,omitempty"`
	CachedTokens     *int   `json:"cached_tokens,omitempty"`
	Chunks           int    `json:"chunks,omitempty"`
	TokenCountSource string `json:"token_count_source,omitempty"`
	// FirstTokens and LastTokens are the server's own count at the first and
	// the last chunk with text; 0 unless TokenCountSource is
	// "usage_continuous".
	FirstTokens int `json:"first_tokens,omitempty"`
	LastTokens  int `json:"last_tokens,omitempty"`
	// KeepAlives counts comment lines of the stream: the connection lives, the
	// model says nothing.
	KeepAlives int `json:"keep_alives,omitempty"`
	// GapsMS are the times between chunks with text, the first 4,096 of them.
	GapsMS []float64 `json:"gaps_ms,omitempty"`
	// ServerTokS is the server's own decode rate (llama.cpp
	// timings.predicted_per_second), where it gives one.
	ServerTokS *float64 `json:"server_tok_per_s,omitempty"`
	// Fallbacks are request fields that were dropped because the server
	// refused them.
	Fallbacks []string `json:"request_fallbacks,omitempty"`
	// DoneSeen: the stream ended with [DONE].
	DoneSeen bool `json:"done_seen,omitempty"`
}

// CheckVerdict is what the answers to 2+2 are worth.
type CheckVerdict string

// What a check can come to.
const (
	CheckPass          CheckVerdict = "pass"
	CheckPassTruncated CheckVerdict = "pass_truncated" // readable reasoning, cut by max_tokens
	CheckWrong         CheckVerdict = "wrong_answer"   // fluent and wrong, twice
	CheckGarbage       CheckVerdict = "garbage_output"
	CheckEmpty         CheckVerdict = "empty"
	CheckLoading       CheckVerdict = "loading"      // the server says itself that it still loads (503)
	CheckNoEndpoint    CheckVerdict = "no_endpoint"  // HTTP answers, but offers no chat completions
	CheckUnauthorised  CheckVerdict = "unauthorised" // 401, 403
	CheckBusy          CheckVerdict = "busy"         // 429
	CheckError         CheckVerdict = "error"        // see ErrorType of the last exchange
)

// Check is the question "what is 2+2?" put to the server.
type Check struct {
	URL     string   `json:"url"`
	ModelID string   `json:"model_id"`
	Models  []string `json:"models,omitempty"`
	// KeyFrom says where the API key was found, if in the target itself: "its
	// command line (--api-key)". The key is kept nowhere.
	KeyFrom string       `json:"key_from,omitempty"`
	Verdict CheckVerdict `json:"verdict"`
	// Says is one sentence about the verdict.
	Says string `json:"says"`
	// Health is the answer to GET /health: it never proves readiness.
	HealthStatus int `json:"health_status,omitempty"`
	// Exchanges are the questions in order: the incident's question, then, if
	// its answer was fluent and wrong, the plainer one.
	Exchanges []Exchange `json:"exchanges,omitempty"`
	TookMS    float64    `json:"took_ms"`
	// Requests is how many HTTP requests were sent in all.
	Requests int `json:"requests"`
}

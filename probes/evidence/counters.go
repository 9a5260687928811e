package evidence

// CounterLook is what an engine said of itself at one time. A counter that it
// does not show is nil. None of them proves health.
type CounterLook struct {
	// SinceMS is on the clock of the frames.
	SinceMS float64 `json:"since_ms"`
	// During is "" before the server was asked, "check" while it was or behind it.
	During string `json:"during,omitempty"`
	// Endpoint is where it was read ("/metrics"), Engine whose names the counters
	// bear.
	Endpoint string `json:"endpoint"`
	Engine   string `json:"engine"`
	// Running and Waiting count requests.
	Running *float64 `json:"running,omitempty"`
	Waiting *float64 `json:"waiting,omitempty"`
	// GeneratedTokens and PromptTokens count since the start of the engine, or, with
	// PerRequest, over the requests under way.
	GeneratedTokens *float64 `json:"generated_tokens,omitempty"`
	PromptTokens    *float64 `json:"prompt_tokens,omitempty"`
	PerRequest      bool     `json:"per_request,omitempty"`
	// Steps grows with every step in which the engine makes tokens, or every few; its
	// unit is the engine's. Nil: nothing that it shows moves before a request is over.
	Steps *float64 `json:"steps,omitempty"`
	// CacheUsage is the share of the KV cache in use, 0 to 1.
	CacheUsage *float64 `json:"cache_usage,omitempty"`
}

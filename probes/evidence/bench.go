package evidence

// Bench is the short benchmark. The key names of SingleStream are those of
// `vllm bench serve --save-result`, so that scripts for those files read it.
type Bench struct {
	Date         string       `json:"date"`
	Backend      string       `json:"backend"`
	EndpointType string       `json:"endpoint_type"`
	Label        string       `json:"label"`
	ModelID      string       `json:"model_id"`
	BaseURL      string       `json:"base_url"`
	SingleStream SingleStream `json:"single_stream"`
	// Baseline is filled by the report: it is a judgement and no evidence.
	Baseline *Baseline `json:"baseline,omitempty"`
	// Complete is false for a run that was cut off; Stopped says by what.
	Complete bool     `json:"complete"`
	Stopped  string   `json:"stopped,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	TookMS   float64  `json:"took_ms"`
}

// SingleStream are the numbers of one stream at a time. Milliseconds where the
// name says _ms; arrays and Duration in seconds; throughput per second. Errors
// has one entry for every stream, empty for a completed one; the other arrays
// hold the completed streams only, in order.
type SingleStream struct {
	NumPrompts           int       `json:"num_prompts"`
	MaxConcurrency       int       `json:"max_concurrency"`
	RequestRate          string    `json:"request_rate"`
	Completed            int       `json:"completed"`
	Failed               int       `json:"failed"`
	Duration             float64   `json:"duration"`
	TotalInputTokens     int       `json:"total_input_tokens"`
	TotalOutputTokens    int       `json:"total_output_tokens"`
	RequestThroughput    float64   `json:"request_throughput"`
	OutputThroughput     float64   `json:"output_throughput"`
	TotalTokenThroughput float64   `json:"total_token_throughput"`
	MeanTTFTMS           float64   `json:"mean_ttft_ms"`
	MedianTTFTMS         float64   `json:"median_ttft_ms"`
	StdTTFTMS            float64   `json:"std_ttft_ms"`
	MeanTPOTMS           float64   `json:"mean_tpot_ms"`
	MedianTPOTMS         float64   `json:"median_tpot_ms"`
	StdTPOTMS            float64   `json:"std_tpot_ms"`
	MeanITLMS            *float64  `json:"mean_itl_ms,omitempty"`
	MedianITLMS          *float64  `json:"median_itl_ms,omitempty"`
	StdITLMS             *float64  `json:"std_itl_ms,omitempty"`
	P99ITLMS             *float64  `json:"p99_itl_ms,omitempty"`
	MeanE2ELMS           float64   `json:"mean_e2el_ms"`
	MedianE2ELMS         float64   `json:"median_e2el_ms"`
	StdE2ELMS            float64   `json:"std_e2el_ms"`
	DecodeTokS           Estimate  `json:"decode_tok_per_s"`
	TokenCountSource     string    `json:"token_count_source"`
	InputLens            []int     `json:"input_lens"`
	OutputLens           []int     `json:"output_lens"`
	TTFTs                []float64 `json:"ttfts"`
	Latencies            []float64 `json:"latencies"`
	StartTimes           []float64 `json:"start_times"`
	// ITLs are the times between chunks of each stream, in seconds, as in
	// vLLM's detailed results. They are between tokens only where the ITL
	// statistics above are given.
	ITLs [][]float64 `json:"itls,omitempty"`
	// CachedTokens are the prompt tokens that came from a cache, by stream, for
	// servers that tell.
	CachedTokens  []int     `json:"cached_tokens,omitempty"`
	DecodeRates   []float64 `json:"decode_rates"`
	FinishReasons []string  `json:"finish_reasons"`
	Errors        []string  `json:"errors"`
	// NumEarlyStopped counts streams that ended before their token limit.
	NumEarlyStopped int `json:"num_early_stopped"`
	// CutTokS is the decode rate of a stream that the budget or the operator
	// cut off; it counts in no mean.
	CutTokS *float64 `json:"cut_off_tok_per_s,omitempty"`
	// ServerTokS is the mean of the server's own decode rates, if it gives any.
	ServerTokS *float64 `json:"server_tok_per_s,omitempty"`
}

// Estimate is a mean with its spread: sample standard deviation (n-1), and the
// 95 % confidence interval by Student's t. With N below 2 only Mean is known,
// with N 0 nothing.
type Estimate struct {
	Mean      float64 `json:"mean"`
	Std       float64 `json:"std"`
	CV        float64 `json:"cv"`
	SE        float64 `json:"se"`
	TCritical float64 `json:"t_critical"`
	CILow     float64 `json:"ci_low"`
	CIHigh    float64 `json:"ci_high"`
	N         int     `json:"n"`
}

// Baseline is the comparison with an earlier number.
type Baseline struct {
	DecodeTokS   float64 `json:"decode_tok_per_s"`
	TolerancePct float64 `json:"tolerance_pct"`
	Ratio        float64 `json:"ratio"`
	// Verdict is "ok", "slow", "fast" or "inconclusive".
	Verdict string `json:"verdict"`
}

package counters

// names are the metrics of one engine. A histogram's value is its sum. Several
// names for one thing are those of different versions; the first that is there
// counts.
type names struct {
	engine                              string
	running, waiting, generated, prompt []string
	// steps grow with every step of the engine, or every few. SGLang, llama.cpp and
	// TGI count generated tokens when their request is over.
	steps []string
	// cache is the share of the KV cache in use, 0 to 1.
	cache []string
}

// known are the engines, as their sources name their metrics: vLLM
// v1/metrics/loggers.py, SGLang observability (metrics_collector.py), llama.cpp
// tools/server/README.md, TGI router/src/server.rs, Triton's docs/user_guide/metrics.md.
var known = []names{
	{engine: "vllm", running: []string{"vllm:num_requests_running"}, waiting: []string{"vllm:num_requests_waiting"},
		generated: []string{"vllm:generation_tokens_total", "vllm:generation_tokens"}, prompt: []string{"vllm:prompt_tokens_total", "vllm:prompt_tokens"}, steps: []string{"vllm:generation_tokens_total", "vllm:generation_tokens"},
		cache: []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}},
	{engine: "sglang", running: []string{"sglang:num_running_reqs"}, waiting: []string{"sglang:num_queue_reqs"},
		generated: []string{"sglang:generation_tokens_total", "sglang:generation_tokens"}, prompt: []string{"sglang:prompt_tokens_total", "sglang:prompt_tokens"}, steps: []string{"sglang:realtime_tokens_total"},
		cache: []string{"sglang:token_usage"}},
	{engine: "llamacpp", running: []string{"llamacpp:requests_processing"}, waiting: []string{"llamacpp:requests_deferred"},
		generated: []string{"llamacpp:tokens_predicted_total"}, prompt: []string{"llamacpp:prompt_tokens_total"}, steps: []string{"llamacpp:n_decode_total"},
		cache: []string{"llamacpp:kv_cache_usage_ratio"}},
	{engine: "tgi", running: []string{"tgi_batch_current_size"}, waiting: []string{"tgi_queue_size"},
		generated: []string{"tgi_request_generated_tokens"}, prompt: []string{"tgi_request_input_length"}, steps: []string{"tgi_batch_forward_duration"}},
	{engine: "triton", waiting: []string{"nv_inference_pending_request_count"}, generated: []string{"nv_inference_count"}},
}

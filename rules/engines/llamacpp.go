package engines

import (
	"slices"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// llamacpp is llama.cpp's HTTP server, as the program llama-server or as a
// library in another program. Its log lines are in llamacpp_lines.go. It is one
// process with many threads and needs no other.
var llamacpp = Engine{
	ID: "llamacpp", Name: "llama.cpp",
	Role:       llamacppRole,
	Signatures: llamacppLines,
	// No format: its lines name neither a rank nor a time of day.
	Flags: Flags{
		Model:      []string{"-m", "--model", "-hf", "-hfr", "--hf-repo"},
		ServedName: []string{"-a", "--alias"}, Host: []string{"--host"}, Port: []string{"--port"}, APIKey: []string{"--api-key"}, APIKeyList: true,
		DefaultPort: 8080, DefaultHost: "127.0.0.1",
		Env: map[string]string{
			"-m": "LLAMA_ARG_MODEL", "-a": "LLAMA_ARG_ALIAS", "--host": "LLAMA_ARG_HOST", "--port": "LLAMA_ARG_PORT", "--api-key": "LLAMA_API_KEY",
		},
	},
	Distortions: llamacppDistortions,
	// Every option has a variable.
	Env: []string{"LLAMA_ARG_*", "LLAMA_API_KEY", "GGML_CUDA_P2P_MAX_BATCH_SIZE", "CUDA_VISIBLE_DEVICES"},
	Silence: map[evidence.Phase]time.Duration{
		evidence.PhaseStarting: time.Minute,
		evidence.PhaseDownload: 10 * time.Minute,
		// Mapped files on a cold network disk; the dots come in one line.
		evidence.PhaseWeights: 20 * time.Minute,
		// The first kernels are loaded here; newer versions print nothing.
		evidence.PhaseWarmUp: 3 * time.Minute,
	},
	ListensEarly: true,
}

// llamacppRole knows the program by its name, and a Python program by the
// library it has loaded: a wheel may hold the whole server.
func llamacppRole(p *evidence.Process) (Role, bool) {
	name := program(p)
	if name == "llama-server" || strings.HasPrefix(name, "llama-server-") || name == "koboldcpp" || name == "llamafile" {
		return Role{Name: "api-server", Head: true}, true
	}
	if name == "llama" && len(p.Argv) > 1 && p.Argv[1] == "serve" {
		return Role{Name: "api-server", Head: true}, true
	}
	if interpreted(p) != nil && slices.ContainsFunc(p.Libraries, isLlamaLibrary) {
		return Role{Name: "api-server", Head: true}, true
	}
	return Role{}, false
}

// isLlamaLibrary tells a shared object that holds llama.cpp: libllama.so,
// libggml-cuda.so, xllamacpp.cpython-311-x86_64-linux-gnu.so.
func isLlamaLibrary(name string) bool {
	return strings.Contains(name, "llama") || strings.Contains(name, "ggml")
}

var llamacppDistortions = slices.Concat(
	spelled("no layer is on the GPU", "the CPU does all the work", "-ngl 0", "--gpu-layers 0", "--n-gpu-layers 0"),
	spelled("no GPU is used", "the CPU does all the work", "-dev none", "--device none"),
	spelled("some tensors are kept in host memory", "their layers run on the CPU", "-ot", "--override-tensor", "--cpu-moe", "-cmoe", "--n-cpu-moe", "-ncmoe"),
	spelled("the first request pays for loading the kernels", "", "--no-warmup"),
	spelled("every step is logged", "", "-v", "--verbose", "-lv 4|5", "--verbosity 4|5", "--log-verbosity 4|5"),
	spelled("every prompt is written to disk", "", "--log-prompts-dir"),
	spelled("the KV cache is in host memory", "attention crosses the PCIe bus", "--no-kv-offload", "-nkvo"),
	spelled("large batches are not sent to the GPU", "slower prefill", "--no-op-offload"),
	spelled("a request waits until all others are done", "", "--no-cont-batching", "-nocb"),
	spelled("flash attention is off", "slower with long contexts", "-fa off", "--flash-attn off"),
	spelled("prompts are computed anew each time", "prefill slower than with the cache", "--no-cache-prompt", "--cache-ram 0"),
	spelled("one request at a time", "concurrent requests queue", "-np 1", "--parallel 1"),
	startOnly(spelled("model data is checked while loading", "slower start only", "--check-tensors")),
	spelled("more threads than processors: they wait for each other at every step", "many times slower on the CPU", "-t >cpus", "--threads >cpus", "-tb >cpus", "--threads-batch >cpus"),
	spelled(speculation, guesses, "-md", "--model-draft", "-hfd", "--hf-repo-draft", "--spec-type"),

	set("CUDA graphs are off", "slower decoding of single streams", "GGML_CUDA_DISABLE_GRAPHS"),
	set("copies to the GPU go through pageable memory", "", "GGML_CUDA_NO_PINNED"),
	set("GPU memory may be paged to the host without a word", "", "GGML_CUDA_ENABLE_UNIFIED_MEMORY"),
	set("something is logged for debugging", "", "GGML_SCHED_DEBUG", "LLAMA_TRACE", "LLAMA_SERVER_SLOTS_DEBUG"),
)

package engines

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// vllm is vLLM, 0.6.6 to 0.32. Its log lines are in vllm_lines.go. Option names
// and defaults are those of its arg_utils.py and cli_args.py.
var vllm = Engine{
	ID: "vllm", Name: "vLLM",
	Role:       vllmRole,
	Signatures: vllmLines,
	Formats: []evidence.LineFormat{{
		Engine: "vllm",
		// "(Worker_TP0 pid=350)", "(VllmWorker rank=3 pid=7)", "(EngineCore_DP1
		// pid=7)"; a name without a number is no rank.
		Rank:   `\((?:(?P<rank>(?:VllmWorker\w*|Worker|EngineCore|ApiServer|APIServer)[_ -][^() ]*\d)|\w+) pid=\d+\)`,
		Time:   `\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<time>\d\d-\d\d \d\d:\d\d:\d\d)`,
		Layout: "01-02 15:04:05",
	}},
	Flags: Flags{
		Model: []string{"--model", "--model-tag"}, ServedName: []string{"--served-model-name"},
		Host: []string{"--host"}, Port: []string{"--port"}, APIKey: []string{"--api-key"}, Socket: []string{"--uds"},
		DefaultPort: 8000, ModelIsPositional: []string{"serve"},
		Env: map[string]string{"--api-key": "VLLM_API_KEY"},
	},
	Heads:       vllmHeads,
	LogPart:     vllmLogPart,
	Meets:       Meeting{Address: []string{"--master-addr", "--data-parallel-address", "-dpa"}, Port: []string{"--master-port", "--data-parallel-rpc-port", "-dpp"}},
	Distortions: vllmDistortions,
	Env: []string{
		"VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "VLLM_RPC_TIMEOUT", "VLLM_RINGBUFFER_WARNING_INTERVAL",
		"VLLM_PROCESS_NAME_PREFIX", "VLLM_CONFIGURE_LOGGING", "VLLM_LOGGING_CONFIG_PATH", "VLLM_LOGGING_PREFIX", "VLLM_CACHE_ROOT",
		"VLLM_USE_RUST_FRONTEND", "VLLM_CPU_KVCACHE_SPACE", "VLLM_HOST_IP", "VLLM_PORT", "VLLM_API_KEY",
	},
	Silence: map[evidence.Phase]time.Duration{
		evidence.PhaseStarting: 3 * time.Minute,
		evidence.PhaseDownload: 10 * time.Minute,
		// Old versions probed peer access for up to 12 minutes.
		evidence.PhaseCommunicator: 12 * time.Minute,
		// Repacking after the files are read prints nothing.
		evidence.PhaseWeights:     20 * time.Minute,
		evidence.PhaseConvert:     30 * time.Minute,
		evidence.PhaseKernelBuild: 20 * time.Minute,
		// 133 s without a line but heartbeats were seen in a first start on a
		// CPU, 42 s on eight GPUs; larger models take longer.
		evidence.PhaseGraphCompile: 10 * time.Minute,
		evidence.PhaseAutotune:     2 * time.Hour,
		// 73 s were seen.
		evidence.PhaseGraphCapture: 5 * time.Minute,
		evidence.PhaseWarmUp:       10 * time.Minute,
	},
}

// vllmRole knows the API server by its command line and the others by their
// titles, which they have since mid-2025 if setproctitle is installed. A worker
// gets its rank into the title when its communicators are up.
func vllmRole(p *evidence.Process) (Role, bool) {
	part, titled := strings.CutPrefix(title(p), "VLLM::")
	if !titled {
		if isScript(p, "vllm", "serve", "launch") || isPython(p, "vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server") ||
			isPython(p, "vllm.entrypoints.cli.main") {
			return Role{Name: "api-server", Head: true}, true
		}
		return Role{}, false
	}
	part, _, _ = strings.Cut(part, " ")
	rank := ""
	if strings.Contains(part, "_") {
		rank = part
	}
	if len(p.Argv) == 0 {
		rank = "" // cut off
	}
	switch name, _, _ := strings.Cut(part, "_"); {
	case isPart(p, "VLLM::", name, "EngineCore"):
		return Role{Name: "engine-core", Rank: rank, Head: true}, true
	case name == "Worker":
		return Role{Name: "worker", Rank: rank, Head: true}, true
	case name == "APIServer" || name == "ApiServer":
		return Role{Name: "api-server", Rank: rank, Head: true}, true
	case isPart(p, "VLLM::", name, "DPCoordinator"):
		return Role{Name: "data-parallel-controller", Head: true}, true
	}
	return Role{Name: "helper"}, true
}

// vllmLogPart reads the prefix "(Worker_TP0 pid=350)".
func vllmLogPart(line string) (LogPart, bool) {
	inner, ok := strings.CutPrefix(line, "(")
	if !ok {
		return LogPart{}, false
	}
	name, rest, ok := strings.Cut(inner, " pid=")
	digits, _, closed := strings.Cut(rest, ")")
	pid, err := strconv.Atoi(digits)
	if !ok || !closed || err != nil || pid < 1 || strings.ContainsAny(name, "() ") {
		return LogPart{}, false
	}
	part := LogPart{NSPID: pid}
	if strings.Contains(name, "_") {
		part.Rank = name
	}
	switch kind, _, _ := strings.Cut(name, "_"); kind {
	case "EngineCore":
		part.Role = "engine-core"
	case "Worker":
		part.Role = "worker"
	case "APIServer", "ApiServer":
		part.Role = "api-server"
	default:
		return LogPart{}, false
	}
	return part, true
}

// vllmHeads: one engine core for each data parallel replica of this node, and
// in each one worker for each GPU of the replica, if there is more than one. A
// single worker may live inside the engine core.
func vllmHeads(c CommandLine) []Head {
	for _, elsewhere := range []string{"--config", "--headless", "--data-parallel-rank", "-dpr", "--data-parallel-external-lb", "--data-parallel-hybrid-lb"} {
		if _, ok := c.Value(elsewhere); ok {
			return nil // the numbers stand elsewhere, or are those of other nodes
		}
	}
	for _, backend := range []string{"--distributed-executor-backend", "--data-parallel-backend"} {
		if v, _ := c.Value(backend); v == "ray" || v == "external_launcher" {
			return nil // workers are no children of the server
		}
	}
	tp := c.Int(1, "--tensor-parallel-size", "-tp")
	pp := c.Int(1, "--pipeline-parallel-size", "-pp")
	dp := c.Int(1, "--data-parallel-size", "-dp")
	local := c.Int(dp, "--data-parallel-size-local", "-dpl")
	nodes := c.Int(1, "--nnodes", "-n")
	if tp < 1 || pp < 1 || dp < 1 || local < 0 || nodes < 1 || tp*pp%nodes != 0 || nodes > 1 && (dp > 1 || c.Int(0, "--node-rank", "-r") > 0) {
		return nil
	}
	because := "every server has one"
	if dp > 1 {
		because = "--data-parallel-size " + strconv.Itoa(dp)
		if local != dp {
			because += " --data-parallel-size-local " + strconv.Itoa(local)
		}
	}
	heads := []Head{{Role: "engine-core", Count: local, Because: because}}
	if tp*pp > 1 {
		because := "--tensor-parallel-size " + strconv.Itoa(tp)
		if pp > 1 {
			because += " --pipeline-parallel-size " + strconv.Itoa(pp)
		}
		if dp > 1 {
			because += " " + heads[0].Because
		}
		if nodes > 1 {
			because += " --nnodes " + strconv.Itoa(nodes)
		}
		heads = append(heads, Head{Role: "worker", Count: local * tp * pp / nodes, Because: because})
	}
	return heads
}

var vllmDistortions = slices.Concat(
	spelled("neither torch.compile nor CUDA graphs: each kernel of each step is launched from the CPU", "single-stream decoding is often less than half as fast", "--enforce-eager"),
	like(`(?i)"?cudagraph_mode"?\s*[:=]\s*"?NONE|"(level|mode)"\s*:\s*0`, "the compiler of the engine, or its CUDA graphs, are off", "single-stream decoding is often less than half as fast", "--compilation-config", "-cc"),
	spelled("CUDA graphs are off: each kernel of each step is launched from the CPU", "single-stream decoding is often less than half as fast", "--compilation-config.cudagraph_mode NONE", "-cc.cudagraph_mode NONE"),
	spelled("the compiler of the engine is off", "slower kernels, and no piecewise CUDA graphs", "--compilation-config.mode 0|NONE", "--compilation-config.level 0", "-cc.mode 0|NONE", "-O.level 0"),
	spelled(speculation, guesses, "--speculative-config", "-sc", "--speculative-model"),
	spelled("prefixes that requests share are computed once for each", "", "--disable-cascade-attn"),
	spelled("the compiler of the engine is off", "slower kernels, and no piecewise CUDA graphs", "-O0", "-O 0", "--optimization-level 0"),
	spelled("all-reduce goes through NCCL only", "slower tensor parallel steps at small batches", "--disable-custom-all-reduce"),
	spelled("equal prompts are computed anew each time", "prefill slower than with the cache", "--no-enable-prefix-caching"),
	spelled("every request is written to the log", "", "--enable-log-requests", "--enable-log-outputs"),
	spelled("the HTTP server logs every step", "", "--uvicorn-log-level debug|trace"),
	spelled("every request is traced", "", "--collect-detailed-traces", "--otlp-traces-endpoint"),
	spelled("profiling is on", "", "--enable-layerwise-nvtx-tracing", "--profiler-config"),
	spelled("the KV cache is not as large as the memory allows", "concurrent requests queue", "--num-gpu-blocks-override"),
	spelled("one request at a time", "concurrent requests queue", "--max-num-seqs 1"),
	spelled("the CPU prepares a batch only after the one before is done", "the GPU waits between steps", "--no-async-scheduling"),
	spelled("a long prompt stops all decoding until it is read", "uneven decode rates", "--no-enable-chunked-prefill"),
	spelled("weights are random: speed may be right, every answer is nonsense", "", "--load-format dummy"),
	spelled("weights are read from host memory in every step", "bound by the PCIe bus", "--cpu-offload-gb"),

	set("debug lines, and checks of sizes in compiled code", "", "VLLM_LOGGING_LEVEL=DEBUG"),
	set("every Python call is written to a file", "10 to 100 times slower", "VLLM_TRACE_FUNCTION=1"),
	set("every answer is written to the log", "", "VLLM_DEBUG_LOG_API_SERVER_RESPONSE=1|true"),
	set("the CPU waits for the GPU at checks", "", "VLLM_GPU_SYNC_CHECK"),
	set("compiled graphs are not kept", "every start compiles again", "VLLM_DISABLE_COMPILE_CACHE=1|true"),
	set("the engine runs inside the API server", "HTTP and scheduling share one interpreter", "VLLM_ENABLE_V1_MULTIPROCESSING=0|false"),
	set("the old engine is used", "", "VLLM_USE_V1=0"),
	set("results are checked at every step", "", "VLLM_COMPUTE_NANS_IN_LOGITS=1|true", "VLLM_RAISE_ON_LOGIT_NANS=1|true"),
	set("kernels are chosen for equal results, not for speed", "", "VLLM_BATCH_INVARIANT=1"),
	set("profiling is on", "", "VLLM_TORCH_PROFILER_DIR", "VLLM_NVTX_SCOPES_FOR_PROFILING=1", "VLLM_CUSTOM_SCOPES_FOR_PROFILING=1"),
	set("something is logged or dumped for debugging", "", "VLLM_PATTERN_MATCH_DEBUG", "VLLM_DEBUG_DUMP_PATH", "VLLM_GC_DEBUG", "VLLM_DEBUG_WORKSPACE=1", "VLLM_LOG_BATCHSIZE_INTERVAL"),
	set("the server stays up when its engine is dead", "health answers 200 for a dead engine", "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH=1|true"),
	set("kernels are switched off", "", "VLLM_DISABLED_KERNELS", "VLLM_USE_DEEP_GEMM=0", "VLLM_DISABLE_PYNCCL=1|true"),
)

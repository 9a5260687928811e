package engines

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// sglang is SGLang, 0.3.6 to 0.5.23. Its log lines are in sglang_lines.go.
// Option names and defaults are those of its server_args.py.
var sglang = Engine{
	ID: "sglang", Name: "SGLang",
	Role:       sglangRole,
	Signatures: sglangLines,
	Formats: []evidence.LineFormat{{
		Engine: "sglang",
		// The group is empty on lines of the main process and the detokenizer.
		Rank:   `\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?P<rank>(?: [A-Z_]+\d+)*)\]`,
		Time:   `\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)[ \]]`,
		Layout: "2006-01-02 15:04:05",
	}},
	Flags: Flags{
		Model: []string{"--model-path", "--model"}, ServedName: []string{"--served-model-name"},
		Host: []string{"--host"}, Port: []string{"--port"}, APIKey: []string{"--api-key"},
		DefaultPort: 30000, DefaultHost: "127.0.0.1", ModelIsPositional: []string{"serve"},
	},
	Heads:     sglangHeads,
	SpinsIdle: true,
	// "Load weight end" comes after repacking, and before the KV cache is
	// allocated, which takes a quarter of a minute on a CPU.
	After:       map[evidence.Phase]evidence.Phase{evidence.PhaseCommunicator: evidence.PhaseStarting, evidence.PhaseWeights: evidence.PhaseWarmUp},
	Meets:       Meeting{Address: []string{"--dist-init-addr", "--nccl-init-addr"}},
	Distortions: sglangDistortions,
	Env: []string{
		"SGLANG_USE_CPU_ENGINE", "SGLANG_WARMUP_TIMEOUT", "SGLANG_HEALTH_CHECK_TIMEOUT", "SGLANG_WAIT_PORT_TIMEOUT",
		"SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION", "SGLANG_CACHE_DIR", "SGLANG_LOGGING_CONFIG_PATH", "SGLANG_USE_MODELSCOPE",
		"SGLANG_GRPC_PORT", "SGLANG_DISAGGREGATION_*",
	},
	Silence: map[evidence.Phase]time.Duration{
		// Imports from a cold network disk.
		evidence.PhaseStarting: 3 * time.Minute,
		evidence.PhaseDownload: 10 * time.Minute,
		// Seconds are usual. A rank that waits for a late one is silent.
		evidence.PhaseCommunicator: 5 * time.Minute,
		// From the last step of the bar to "Load weight end" nothing is
		// printed; 313 s of dequantising were seen, 10 to 20 minutes are
		// possible.
		evidence.PhaseWeights: 20 * time.Minute,
		evidence.PhaseConvert: 30 * time.Minute,
		// DeepGEMM's own estimate is 10 to 20 minutes.
		evidence.PhaseKernelBuild:  20 * time.Minute,
		evidence.PhaseGraphCompile: 10 * time.Minute,
		// Minutes to two hours; its logger is silenced.
		evidence.PhaseAutotune:     2 * time.Hour,
		evidence.PhaseGraphCapture: 5 * time.Minute,
		// The warm-up request has this time limit of its own.
		evidence.PhaseWarmUp: 10 * time.Minute,
	},
}

// sglangRole knows the launcher by its command line and the others by their
// titles, which they have since 0.4.1.
func sglangRole(p *evidence.Process) (Role, bool) {
	title := title(p)
	part, titled := strings.CutPrefix(title, "sglang::")
	if !titled {
		if isPython(p, "sglang.launch_server") || isScript(p, "sglang", "serve") {
			return Role{Name: "api-server", Head: true}, true
		}
		return Role{}, false
	}
	part, _, _ = strings.Cut(part, " ")
	switch {
	case isPart(p, "sglang::", part, "scheduler"):
		return Role{Name: "scheduler", Head: true}, true
	case strings.HasPrefix(part, "scheduler_"):
		return Role{Name: "scheduler", Rank: sglangRank(strings.TrimPrefix(part, "scheduler")), Head: true}, true
	case isPart(p, "sglang::", part, "detokenizer") || strings.HasPrefix(part, "detokenizer_") || strings.HasPrefix(part, "detokenizer:"):
		if part == "detokenizer_router" {
			return Role{Name: "router", Head: true}, true
		}
		return Role{Name: "detokenizer", Head: true}, true
	case isPart(p, "sglang::", part, "data_parallel_controller"):
		return Role{Name: "data-parallel-controller", Head: true}, true
	case part == "router" || strings.HasSuffix(part, "multi_tokenizer_router"):
		return Role{Name: "router", Head: true}, true
	case part == "server", strings.HasPrefix(part, "http_server"):
		return Role{Name: "api-server", Head: true}, true
	case strings.HasPrefix(part, "tokenizer_worker"):
		return Role{Name: "worker", Head: true}, true
	}
	return Role{Name: "helper"}, true
}

// sglangRank is a title's "_DP1_TP3" as log lines have it: "DP1 TP3".
func sglangRank(suffix string) string {
	var rank strings.Builder
	for i := 1; i < len(suffix); i++ {
		if suffix[i] == '_' && suffix[i-1] >= '0' && suffix[i-1] <= '9' {
			rank.WriteByte(' ')
			continue
		}
		rank.WriteByte(suffix[i])
	}
	return rank.String()
}

// sglangHeads: one scheduler for each GPU of this node, and on the first node a
// detokenizer. Data parallel attention splits the ranks of tp among the
// replicas; without it every replica has its own.
func sglangHeads(c CommandLine) []Head {
	for _, elsewhere := range []string{"--config", "--use-ray", "--encoder-only"} {
		if _, ok := c.Value(elsewhere); ok {
			return nil // the numbers stand elsewhere, or the tree is another
		}
	}
	tp := c.Int(1, "--tp-size", "--tensor-parallel-size", "--tp")
	pp := c.Int(1, "--pp-size", "--pipeline-parallel-size", "--pp")
	dp := c.Int(1, "--dp-size", "--data-parallel-size", "--dp")
	nodes := c.Int(1, "--nnodes")
	count, because := tp*pp, "--tp "+strconv.Itoa(tp)
	if pp > 1 {
		because += " --pp " + strconv.Itoa(pp)
	}
	if dp > 1 {
		because += " --dp " + strconv.Itoa(dp)
		if _, shared := c.Value("--enable-dp-attention"); shared {
			because += " --enable-dp-attention"
		} else {
			count *= dp
		}
	}
	if nodes > 1 {
		because += " --nnodes " + strconv.Itoa(nodes)
	}
	if tp < 1 || pp < 1 || dp < 1 || nodes < 1 || count%nodes != 0 {
		return nil
	}
	heads := []Head{{Role: "scheduler", Count: count / nodes, Because: because}}
	if dp > 1 {
		heads = append(heads, Head{Role: "data-parallel-controller", Count: 1, Because: "--dp " + strconv.Itoa(dp)})
	}
	if c.Int(0, "--node-rank") == 0 {
		n := c.Int(1, "--detokenizer-worker-num")
		heads = append(heads, Head{Role: "detokenizer", Count: n, Because: "every server has one"})
		if n > 1 {
			heads[len(heads)-1].Because = "--detokenizer-worker-num " + strconv.Itoa(n)
		}
	}
	return heads
}

// withoutGraphs is what the incident behind this tool measured.
const withoutGraphs = "single-stream decoding 2.4 times slower in the incident this tool was built after: 27 tok/s, 63.6 tok/s without the flag"

var sglangDistortions = slices.Concat(
	spelled("CUDA graphs are off: each kernel of each step is launched from the CPU", withoutGraphs,
		"--disable-cuda-graph", "--disable-decode-cuda-graph", "--cuda-graph-backend-decode disabled"),
	spelled("prefill runs without CUDA graphs", "slower time to first token",
		"--disable-prefill-cuda-graph", "--disable-piecewise-cuda-graph", "--cuda-graph-backend-prefill disabled"),
	spelled("batches between the captured sizes run without a CUDA graph", "uneven decode rates", "--disable-cuda-graph-padding"),
	spelled("CUDA graphs are captured and replayed in a debugging mode", "", "--debug-cuda-graph", "--enable-profile-cuda-graph"),
	spelled("every step writes debug lines, and libraries do so too", "the log grows by hundreds of lines a minute; costs CPU time on the path of each token", "--log-level debug|trace", "--log-level-http debug|trace"),
	spelled("every request is written to the log", "", "--log-requests", "--log-requests-level 2|3"),
	spelled("a statistics line for each decode step", "", "--decode-log-interval 1"),
	spelled("timing of every request is recorded", "", "--show-time-cost", "--enable-request-time-stats-logging", "--enable-trace"),
	spelled("profiling markers around every layer", "", "--enable-layerwise-nvtx-marker", "--enable-torch-compile-debug-mode"),
	spelled("equal prompts are computed anew each time", "prefill slower than with the cache", "--disable-radix-cache", "--disable-chunked-prefix-cache"),
	spelled("the CPU prepares a batch only after the one before is done", "the GPU waits between steps", "--disable-overlap-schedule"),
	spelled("all-reduce goes through NCCL only", "slower tensor parallel steps at small batches", "--disable-custom-all-reduce"),
	spelled("kernels run with untuned settings", "", "--disable-flashinfer-autotune", "--disable-shared-experts-fusion"),
	spelled("no forward pass was made before the server said it was ready", "the first requests pay for kernel compilation", "--skip-server-warmup"),
	spelled("kernels are chosen for equal results, not for speed", "", "--enable-deterministic-inference"),
	spelled("results are checked at every step", "", "--enable-nan-detection", "--kv-canary log|raise"),
	spelled("tensors of every layer are written to disk", "many times slower", "--debug-tensor-dump-output-folder"),
	spelled("weights are random: speed may be right, every answer is nonsense", "", "--load-format dummy"),
	spelled("one request at a time", "concurrent requests queue", "--max-running-requests 1"),
	spelled("attention runs as plain PyTorch operations", "many times slower than a kernel", "--attention-backend torch_native"),
	spelled("batches above the largest captured size run without a CUDA graph", "slower decoding with many streams", "--cuda-graph-max-bs <8"),
	spelled("the way between GPUs is checked, and hidden states are sent back", "", "--enable-p2p-check", "--enable-return-hidden-states"),
	spelled(speculation, guesses, "--speculative-algorithm", "--speculative-algo", "--speculative-draft-model-path"),
	spelled("the scheduler sleeps when idle", "slower first token after a pause", "--sleep-on-idle"),

	set("the accepted length of speculative decoding is made up", "decode rates are too good to be true", "SGLANG_SIMULATE_ACC_LEN"),
	set("experts are picked by a fixed rule instead of by the model", "answers are nonsense; load balance is too good", "SGLANG_SIMULATE_UNIFORM_EXPERTS", "SGLANG_SIMULATE_ROUND_ROBIN_EXPERTS"),
	set("the prefix cache never hits", "", "SGLANG_RADIX_FORCE_MISS"),
	set("answers are cut at this many tokens", "", "SGLANG_MAX_NEW_TOKENS_LIMIT"),
	set("a part of the server sleeps on purpose, for tests of its watchdogs", "looks like a real hang",
		"SGLANG_TEST_STUCK_DETOKENIZER", "SGLANG_TEST_STUCK_DP_CONTROLLER", "SGLANG_TEST_STUCK_SCHEDULER_INIT", "SGLANG_TEST_STUCK_TOKENIZER"),
	set("requests are taken back at random, for tests", "", "SGLANG_TEST_RETRACT"),
	set("calls, steps or memory are logged or checked for debugging", "", "SGLANG_KERNEL_API_LOGLEVEL", "SGLANG_KERNEL_API_DUMP_DIR", "SGLANG_LOG_FORWARD_ITERS",
		"SGLANG_RECORD_STEP_TIME", "SGLANG_DETECT_SLOW_RANK", "SGLANG_DEBUG_MEMORY_POOL", "SGLANG_DEBUG_POISON_POOL", "SGLANG_INVARIANT_CHECK",
		"SGLANG_ENABLE_ASYNC_ASSERT", "SGLANG_SANITIZE_NAN_LOGITS", "SGLANG_CUDA_COREDUMP",
		"SGLANG_ENABLE_NVTX_SCHEDULER=1|true", "SGLANG_ENABLE_NVTX_OPERATIONS=1|true", "SGLANG_GRAPH_BATCH_CAPTURE"),
	set("DeepGEMM kernels are off or compiled while serving", "latency spikes, or slower FP8 layers", "SGLANG_ENABLE_JIT_DEEPGEMM=0|false", "SGLANG_JIT_DEEPGEMM_PRECOMPILE=0|false", "SGLANG_DG_USE_NVRTC=1|true"),
)

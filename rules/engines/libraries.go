package engines

import (
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
)

// libraries is no engine: it is what the libraries under all of them print and
// read. It has no role, so no process is ever recognised as it.
var libraries = Engine{
	ID: "common", Name: "libraries",
	Signatures: libraryLines,
	Formats: []evidence.LineFormat{
		// PyTorch's C++ lines, "[rank0]:[E1218 20:27:21.426415540 File.cpp:629]".
		{Engine: "common", Rank: `\[(?P<rank>rank\d+)\]:`, Time: `\[[IWEF](?P<time>\d{4} \d\d:\d\d:\d\d\.\d+)`, Layout: "0102 15:04:05"},
		// Python's logging with %(asctime)s, as flashinfer sets it up.
		{Engine: "common", Time: `(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) - `, Layout: "2006-01-02 15:04:05"},
	},
	Distortions: libraryDistortions,
	Env: []string{
		"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_MODULE_LOADING",
		"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_TIMEOUT", "NCCL_RAS_*",
		"TORCH_NCCL_*", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE",
		"HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_HUB_ENABLE_HF_TRANSFER", "TRANSFORMERS_OFFLINE", "XDG_CACHE_HOME",
		"PYTHONUNBUFFERED", "OMP_NUM_THREADS", "MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE",
		"JOURNAL_STREAM", "TMUX", "TMUX_PANE", "STY", "LD_PRELOAD",
	},
	Silence: map[evidence.Phase]time.Duration{
		// A server of no known engine.
		evidence.PhaseStarting: 3 * time.Minute, evidence.PhaseDownload: 10 * time.Minute, evidence.PhaseCommunicator: 10 * time.Minute,
		evidence.PhaseWeights: 20 * time.Minute, evidence.PhaseConvert: 30 * time.Minute, evidence.PhaseKernelBuild: 20 * time.Minute,
		evidence.PhaseGraphCompile: 10 * time.Minute, evidence.PhaseAutotune: 2 * time.Hour, evidence.PhaseGraphCapture: 5 * time.Minute,
		evidence.PhaseWarmUp: 10 * time.Minute,
	},
}

// What every engine's speculative decoding does to a benchmark.
const (
	speculation = "speculative decoding: how fast it is depends on how well the draft guesses this very text"
	guesses     = "compare only runs with the same prompts; made-up prompts are often too fast or too slow"
)

var libraryDistortions = slices.Concat(
	set("every kernel launch waits for its end", "several times slower; also slows or breaks graph capture", "CUDA_LAUNCH_BLOCKING=1"),
	set("NCCL writes a line for each operation", "", "NCCL_DEBUG=INFO|TRACE", "NCCL_DEBUG_SUBSYS=ALL"),
	set("a transport of NCCL is switched off", "slower collectives", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1", "NCCL_IB_DISABLE=1", "NCCL_NVLS_ENABLE=0"),
	set("NCCL's choice of algorithm is overruled", "may be far from the best", "NCCL_ALGO", "NCCL_PROTO"),
	set("extra collectives check every collective", "", "TORCH_DISTRIBUTED_DEBUG=DETAIL"),
	set("collectives are waited for, timed or recorded for debugging", "", "TORCH_NCCL_BLOCKING_WAIT=1", "TORCH_NCCL_DESYNC_DEBUG=1", "TORCH_NCCL_ENABLE_TIMING=1"),
	set("PyTorch logs what it does", "", "TORCH_LOGS", "TORCH_COMPILE_DEBUG=1", "TORCH_TRACE", "TORCH_CPP_LOG_LEVEL=INFO"),
	set("torch.compile is off", "slower kernels", "TORCHDYNAMO_DISABLE=1", "TORCH_COMPILE_DISABLE=1"),
	set("GPU memory is asked for anew each time", "many times slower", "PYTORCH_NO_CUDA_MEMORY_CACHING=1"),
	set("Python runs with checks for developers", "", "PYTHONDEVMODE=1", "PYTHONASYNCIODEBUG=1", "PYTHONTRACEMALLOC", "PYTHONPROFILEIMPORTTIME=1"),
	set("memory errors are looked for at run time", "many times slower", "ASAN_OPTIONS", "MALLOC_CHECK_", "MALLOC_PERTURB_"),
	set("a profiler is loaded into every CUDA process", "", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"),
	set("a fault on the GPU dumps its memory", "", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1"),
	set("Triton kernels run in an interpreter on the CPU", "thousands of times slower", "TRITON_INTERPRET=1"),
	startOnly(set("kernels are compiled again at each start", "slower start only", "TRITON_ALWAYS_COMPILE=1", "CUDA_CACHE_DISABLE=1")),
	set("compilers log what they do", "", "TRITON_PRINT_AUTOTUNING=1", "MLIR_ENABLE_DUMP", "TRITON_KERNEL_DUMP=1", "FLASHINFER_JIT_VERBOSE=1", "FLASHINFER_LOGLEVEL", "FLASHINFER_LOGGING_LEVEL=debug", "DG_JIT_DEBUG=1"),
	set("one CPU thread for each process's own computing", "slow sampling and tokenising", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1"),
)

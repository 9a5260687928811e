package engines

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The log of the incident whyhang was built after, made again from what is
// known of it: 312 lines, eight ranks, 313 s between "Load weight begin" and
// the last "Load weight end", debug level, no graph capture, and the line that
// was overlooked at the very end.
const (
	incidentRanks = 8
	incidentLines = 312
	incidentReady = "2026-02-22 22:59:08"
	incidentLoad  = 313 * time.Second
)

// incident writes log lines with a clock.
type incident struct {
	b   strings.Builder
	now time.Time
}

func (l *incident) lines() int { return strings.Count(l.b.String(), "\n") }

// say writes a line of the main process, ranked one of a scheduler.
func (l *incident) say(format string, args ...any) {
	fmt.Fprintf(&l.b, "[%s] %s\n", l.now.Format(time.DateTime), fmt.Sprintf(format, args...))
}

func (l *incident) ranked(rank int, format string, args ...any) {
	fmt.Fprintf(&l.b, "[%s TP%d] %s\n", l.now.Format(time.DateTime), rank, fmt.Sprintf(format, args...))
}

func (l *incident) everyRank(format string, args ...any) {
	for rank := range incidentRanks {
		l.ranked(rank, format, args...)
	}
}

func (l *incident) wait(d time.Duration) { l.now = l.now.Add(d) }

func incidentLog() string {
	at, err := time.ParseInLocation(time.DateTime, incidentReady, time.UTC)
	if err != nil {
		panic(err)
	}
	// 71 s before, between and after the load.
	l := &incident{now: at.Add(-incidentLoad - 71*time.Second)}
	l.start()
	l.load()
	l.finish()
	return l.b.String()
}

func (l *incident) start() {
	l.b.WriteString("/opt/sglang/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.\n  import pynvml  # type: ignore[import]\n")
	l.say("Fail to set RLIMIT_NOFILE: current limit exceeds maximum limit")
	l.say("server_args=ServerArgs(model_path='/shared/kimi-k2.5-int4', tokenizer_path='/shared/kimi-k2.5-int4', trust_remote_code=True, host='0.0.0.0', port=8000, tp_size=8, disable_cuda_graph=True, log_level='debug', served_model_name='/shared/kimi-k2.5-int4')")
	l.wait(9 * time.Second)
	l.say("Using default HuggingFace chat template with detected content format: openai")
	l.wait(14 * time.Second)
	for _, model := range []string{"falcon_mamba", "grok", "mamba", "minicpmo", "minicpmv"} {
		l.everyRank("Ignore import error when loading sglang.srt.models.%s: cannot import name 'causal_conv1d_fn'", model)
		l.wait(time.Second)
	}
	l.everyRank("Init torch distributed begin.")
	for rank := range incidentRanks {
		l.ranked(rank, "world_size=8 rank=%d local_rank=%d distributed_init_method=tcp://127.0.0.1:24317 backend=nccl", rank, rank)
	}
	l.ranked(0, "sglang is using nccl==2.27.5")
	l.wait(6 * time.Second)
	l.everyRank("Init torch distributed ends. elapsed=6.02 s, mem usage=1.21 GB")
	l.wait(time.Second)
}

func (l *incident) load() {
	begin := l.now
	l.everyRank("Load weight begin. avail mem=93.10 GB")
	l.everyRank("Detected compressed-tensors checkpoint, group size 32")
	l.ranked(0, "Using model weights format ['*.safetensors']")
	const shards = 64
	l.b.WriteString("\rMulti-thread loading shards:   0% Completed | 0/64 [00:00<?, ?it/s]")
	for n := 1; n <= shards; n++ {
		l.wait(1500 * time.Millisecond)
		took := l.now.Sub(begin).Round(time.Second)
		left := took * time.Duration(shards-n) / time.Duration(n)
		fmt.Fprintf(&l.b, "\rMulti-thread loading shards: %3d%% Completed | %d/%d [%s<%s,  1.50s/it]", 100*n/shards, n, shards, clock(took), clock(left))
	}
	l.b.WriteString("\n")
	// Dequantising: not a line for minutes, then the ranks one by one.
	l.now = begin.Add(incidentLoad - 14*time.Second)
	for rank := range incidentRanks {
		l.ranked(rank, "Load weight end. elapsed=%.2f s, type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=20.31 GB, mem usage=72.79 GB.", l.now.Sub(begin).Seconds())
		if rank < incidentRanks-1 {
			l.wait(2 * time.Second)
		}
	}
}

func (l *incident) finish() {
	l.wait(3 * time.Second)
	l.everyRank("Using KV cache dtype: torch.bfloat16")
	l.everyRank("KV Cache is allocated. #tokens: 171233, KV size: 11.46 GB")
	l.everyRank("Memory pool end. avail mem=8.02 GB")
	l.wait(4 * time.Second)
	l.ranked(0, "max_total_num_tokens=171233, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=7.99 GB")
	// What the debug level adds between here and the end.
	ending := []string{
		"INFO:     Started server process [50299]",
		"INFO:     Waiting for application startup.",
		"INFO:     Application startup complete.",
		"INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
		"Starting new HTTP connection (1): 127.0.0.1:8000",
		`INFO:     127.0.0.1:41210 - "GET /get_model_info HTTP/1.1" 200 OK`,
	}
	const last = 3 // prefill, its answer, the ready line
	for n := 0; l.lines() < incidentLines-last-len(ending); n++ {
		rank := n % incidentRanks
		lock := 140074147386128 + 48*rank
		path := fmt.Sprintf("/root/.cache/torch/inductor/locks/c%dxlb3uaa6kvoxxvj647upwxgrlfbl77xjn7gacmj.lock", n/16)
		if n%2 == 0 {
			l.ranked(rank, "Attempting to acquire lock %d on %s", lock, path)
		} else {
			l.ranked(rank, "Lock %d not acquired on %s, waiting 0.05 seconds ...", lock, path)
		}
		if n%24 == 23 {
			l.wait(time.Second)
		}
	}
	for _, line := range ending {
		l.say("%s", line)
	}
	at, _ := time.ParseInLocation(time.DateTime, incidentReady, time.UTC)
	l.now = at.Add(-2 * time.Second)
	l.ranked(0, "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ")
	l.now = at
	l.say(`INFO:     127.0.0.1:41218 - "POST /generate HTTP/1.1" 200 OK`)
	l.say("The server is fired up and ready to roll!")
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// The incident's log is made by this file; -update writes it. What is known of
// it must hold.
func TestIncidentLog(t *testing.T) {
	log := incidentLog()
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) != incidentLines {
		t.Fatalf("%d lines, want %d", len(lines), incidentLines)
	}
	if want := "[" + incidentReady + "] The server is fired up and ready to roll!"; lines[incidentLines-1] != want {
		t.Errorf("last line %q, want %q", lines[incidentLines-1], want)
	}
	var begin, end time.Time
	ended := map[string]bool{}
	for _, line := range lines {
		at, err := time.Parse(time.DateTime, line[min(1, len(line)):min(20, len(line))])
		switch {
		case strings.Contains(line, "Load weight begin") && begin.IsZero():
			begin = at
		case strings.Contains(line, "Load weight end"):
			end = at
			ended[line[21:24]] = true
		}
		if err == nil && at.After(time.Date(2026, 2, 22, 22, 59, 8, 0, time.UTC)) {
			t.Errorf("after the end: %q", line)
		}
	}
	if end.Sub(begin) != incidentLoad || len(ended) != incidentRanks {
		t.Errorf("load took %s on ranks %v, want %s on %d", end.Sub(begin), ended, incidentLoad, incidentRanks)
	}
	golden(t, filepath.Join(logs, "incident-sglang.log"), []byte(log))
}

package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgv(t *testing.T) {
	for _, tc := range []struct {
		name     string
		in, want []string
	}{
		{"next argument", []string{"vllm", "serve", "m", "--api-key", "abc", "--port", "8000"}, []string{"vllm", "serve", "m", "--api-key", "[redacted]", "--port", "8000"}},
		{"joined", []string{"x", "--api-key=abc", "--admin-api-key=d=e"}, []string{"x", "--api-key=[redacted]", "--admin-api-key=[redacted]"}},
		{"underscores and case", []string{"x", "--hf_token", "a", "--Password", "b"}, []string{"x", "--hf_token", "[redacted]", "--Password", "[redacted]"}},
		{"several values", []string{"x", "--api-keys", "k1", "k2", "--tp", "2"}, []string{"x", "--api-keys", "[redacted]", "[redacted]", "--tp", "2"}},
		{"one value, then the model", []string{"vllm", "serve", "--api-key", "k1", "org/model"}, []string{"vllm", "serve", "--api-key", "[redacted]", "org/model"}},
		{"number as a key", []string{"x", "--api-key", "123456"}, []string{"x", "--api-key", "[redacted]"}},
		{"file of keys", []string{"x", "--api-key-file", "/run/keys", "--password-file", "/run/pw"}, []string{"x", "--api-key-file", "/run/keys", "--password-file", "/run/pw"}},
		{"switch, then the model", []string{"x", "--disable-auth", "org/model"}, []string{"x", "--disable-auth", "org/model"}},
		{"option without a value", []string{"x", "--token", "--port", "1"}, []string{"x", "--token", "--port", "1"}},
		{"last argument", []string{"x", "--token"}, []string{"x", "--token"}},
		{"header", []string{"curl", "-H", "Authorization: Bearer abc"}, []string{"curl", "-H", "Authorization: Bearer [redacted]"}},
		{"variable", []string{"env", "HF_TOKEN=abc def", "PORT=1"}, []string{"env", "HF_TOKEN=[redacted]", "PORT=1"}},
		{"json", []string{"x", "--config", `{"api_key": "a", "max_tokens": 5}`}, []string{"x", "--config", `{"api_key": "[redacted]", "max_tokens": 5}`}},
		{"title in one element", []string{"server --api-key abc --port 1"}, []string{"server --api-key [redacted] --port 1"}},
		{"url", []string{"x", "--proxy-url", "http://a:b@c/"}, []string{"x", "--proxy-url", "http://[redacted]@c/"}},
		{"by shape, under any name", []string{"x", "--note", "hf_abcdefghijkl"}, []string{"x", "--note", "[redacted]"}},
		{"nothing", nil, []string{}},
	} {
		if diff := cmp.Diff(tc.want, Argv(tc.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// The options of the engines, as far as their names sound like secrets.
func TestArgvLeavesEngineOptionsAlone(t *testing.T) {
	for _, option := range []string{
		"--tokenizer-path", "--tokenizer", "--tokenizer-mode", "--tokenizer-worker-num", "--detokenizer-worker-num",
		"--skip-tokenizer-init", "--max-total-tokens", "--max-new-tokens", "--max-num-batched-tokens",
		"--max-batch-prefill-tokens", "--max-prefill-tokens", "--chunked-prefill-size",
		"--kt-gpu-prefill-token-threshold", "--enable-prompt-tokens-details", "--time-to-first-token",
		"--inter-token-latency", "--token-usage", "--pad-token-id", "--eos-token", "--speculative-token-map",
		"--speculative-num-draft-tokens", "--num-reserved-decode-tokens", "--swa-full-tokens-ratio",
		"--key-value-cache-dtype", "--kv-key-value-dim", "--num-key-value-heads", "--stop-tokens",
		"--reasoning-budget", "--mem-fraction-static", "--served-model-name", "--author", "--authority",
		"--max-token", "--monkey-patch", "--keep-alive", "--bypass",
	} {
		for _, value := range []string{"4096", "0.9", "/models/kimi-k2.5-int4", "auto", "meta-llama/Meta-Llama-3-8B-Instruct"} {
			if w := weigh(option); w >= likely {
				t.Errorf("%s weighs %d", option, w)
			}
			want := []string{"x", option, value, option + "=" + value}
			if diff := cmp.Diff(want, Argv(want)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
	}
}

func TestEnv(t *testing.T) {
	for _, tc := range []struct{ name, value, want string }{
		{"HF_TOKEN", "abc", "[redacted]"},
		{"HUGGING_FACE_HUB_TOKEN", "abc", "[redacted]"},
		{"VLLM_API_KEY", "123", "[redacted]"},
		{"API_KEY", "with spaces, and = signs", "[redacted]"},
		{"AWS_SECRET_ACCESS_KEY", "a/b+c", "[redacted]"},
		{"AWS_SESSION_TOKEN", "x", "[redacted]"},
		{"MYSQL_PWD", "x", "[redacted]"},
		{"DB_PASS", "x", "[redacted]"},
		{"HFTOKEN", "x", "[redacted]"},
		{"AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=bcd==;E=f", "AccountName=a;AccountKey=[redacted];E=f"},
		{"DATABASE_URL", "postgres://u:p@h/d", "postgres://[redacted]@h/d"},
		{"GOOGLE_APPLICATION_CREDENTIALS", "/etc/gcp.json", "/etc/gcp.json"},
		{"HF_TOKEN_PATH", "/root/token", "/root/token"},
		{"HF_TOKEN", "", ""},
		{"SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1", "/tmp/ssh-x/agent.1"},
		{"OLDPWD", "/root", "/root"},
		{"PWD", "/root", "/root"},
		{"TOKENIZERS_PARALLELISM", "false", "false"},
		{"SGLANG_MAX_NEW_TOKENS_LIMIT", "1024", "1024"},
		{"OLLAMA_KEEP_ALIVE", "5m", "5m"},
		{"NCCL_DEBUG", "INFO", "INFO"},
		{"LD_PRELOAD", "/usr/lib/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"},
		{"CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"},
	} {
		if got := Env(tc.name, tc.value); got != tc.want {
			t.Errorf("%s=%s: got %q, want %q", tc.name, tc.value, got, tc.want)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want []string
	}{
		{"--api-key", []string{"api", "key"}},
		{"HF_TOKEN", []string{"hf", "token"}},
		{"adminAPIKey", []string{"admin", "api", "key"}},
		{"AccountKey", []string{"account", "key"}},
		{"x.y", []string{"x", "y"}},
		{"--", nil},
	} {
		if diff := cmp.Diff(tc.want, split(tc.in)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.in, diff)
		}
	}
}

func FuzzArgv(f *testing.F) {
	for _, s := range []string{"", "x\x00--api-key\x00abc", "--api-keys\x00a\x00b\x00--x", "=\x00-\x00--=", "A=B\x00--a-token=c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		argv := strings.Split(s, "\x00")
		if got := Argv(argv); len(got) != len(argv) {
			t.Fatalf("%d arguments became %d", len(argv), len(got))
		}
		// The value of a telling option goes, whatever it looks like.
		const option = "--api-key"
		for i, arg := range Argv(append([]string{"server", option}, argv...)) {
			if i == 2 && !isOption(argv[0]) && !isEmpty(argv[0]) && arg != marker {
				t.Fatalf("%s %q became %q", option, argv[0], arg)
			}
		}
	})
}

func BenchmarkString(b *testing.B) {
	const line = "[2026-02-22 22:59:08 TP0] Decode batch, #running-req: 1, #token: 92, token usage: 0.01, cuda graph: False, gen throughput (token/s): 26.71, #queue-req: 0"
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		String(line)
	}
}

package redact

import (
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
	for _, tc := range []struct{ name, in, want string }{
		{"hugging face token in a sentence", "using hf_AbCdEfGhIjKlMnOpQr to download", "using [redacted] to download"},
		{"openai key", "key sk-abcdefghijklmnop1234 given", "key [redacted] given"},
		{"project key", "sk-proj-ab_cd-12345678", "[redacted]"},
		{"github, aws, nvidia", "ghp_0123456789abcdefXYZ AKIAIOSFODNN7EXAMPLE nvapi-abc_DEF-123", "[redacted] [redacted] [redacted]"},
		{"jwt", "got " + jwt + ".", "got [redacted]."},
		{"authorization header", "Authorization: Bearer abcdef", "Authorization: Bearer [redacted]"},
		{"authorization as JSON", `{"authorization": "Basic dXNlcjpwdw=="}`, `{"authorization": "Basic [redacted]"}`},
		{"bare bearer", "-H Bearer abc123def", "-H Bearer [redacted]"},
		{"x-api-key header", "x-api-key: EMPTY-but-set", "x-api-key: [redacted]"},
		{"cookie", "Cookie: a=b; session=c\nHost: x", "Cookie: [redacted]\nHost: x"},
		{"url", "proxy http://bob:hunter2@proxy.local:3128/ used", "proxy http://[redacted]@proxy.local:3128/ used"},
		{"url with empty user", "redis://:p@ss@10.0.0.1:6379/0", "redis://[redacted]@10.0.0.1:6379/0"},
		{"url with a token for a user", "https://0123456789abcdef0123@git.example/x", "https://[redacted]@git.example/x"},
		{"query", "GET /v1?api_key=abc&stream=1 HTTP/1.1", "GET /v1?api_key=[redacted]&stream=1 HTTP/1.1"},
		{"python repr", "ServerArgs(api_key='abc', admin_api_key=None, port=8000)", "ServerArgs(api_key='[redacted]', admin_api_key=None, port=8000)"},
		{"python dict", "{'api_key': 'a b', 'model': 'm'}", "{'api_key': '[redacted]', 'model': 'm'}"},
		{"list of keys", "non-default args: {'api_key': ['a', 'b'], 'seed': 0}", "non-default args: {'api_key': [redacted], 'seed': 0}"},
		{"json with escapes", `{"password":"a\"b","n":1}`, `{"password":"[redacted]","n":1}`},
		{"cut off in the middle", `{"password":"abc`, `{"password":"[redacted]`},
		{"title", "python -m x --api-key abc --port 8000", "python -m x --api-key [redacted] --port 8000"},
		{"environment in a line", "export HF_TOKEN=abc", "export HF_TOKEN=[redacted]"},
		{"nested names", "headers: api_key: abc", "headers: api_key: [redacted]"},
		{"pem", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nnext", "-----BEGIN RSA PRIVATE KEY-----[redacted]\nnext"},
		{"empty", "", ""},
	} {
		if got := String(tc.in); got != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", tc.name, got, tc.want)
		}
	}
}

// Lines of real engines whose numbers the rules read.
func TestStringLeavesEngineLinesAlone(t *testing.T) {
	for _, line := range []string{
		"[2026-02-22 22:59:07 TP0] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0",
		"[2026-02-22 22:59:08 TP0] Decode batch, #running-req: 1, #token: 92, token usage: 0.01, cuda graph: False, gen throughput (token/s): 26.71, #queue-req: 0",
		"max_total_num_tokens=1048576, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144",
		"server_args={'tokenizer_path': '/models/kimi', 'tokenizer_mode': 'auto', 'tokenizer_worker_num': 1, 'max_total_tokens': None, 'speculative_token_map': None, 'api_key': None, 'ssl_keyfile_password': None, 'kt_max_deferred_experts_per_token': None}",
		"KV Cache is allocated. #tokens: 98304, K size: 2.25 GB, V size: 2.25 GB",
		"INFO 11-30 18:00:00 [kv_cache_utils.py:1307] GPU KV cache size: 1,048,576 tokens",
		"Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 14.3 tokens/s, Running: 1 reqs",
		"load: special_eos_id is not in special_eog_ids; _add_bos_eos_token: skipping",
		"llama_model_loader: - kv  12: tokenizer.ggml.bos_token_id u32 = 1",
		"llama_model_loader: - kv   4: qwen2.attention.key_length u32 = 128",
		"Loading key: model.layers.0.self_attn.k_proj.weight",
		"Set --api-key or VLLM_API_KEY to protect the server",
		"tcp://127.0.0.1:41234 ipc:///tmp/abc",
		"bearer authentication is off; the bearer token must match",
		"author: somebody, authority=none",
		"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		"task-abcdefghijklmnop1234 disk-abcdefghijklmnop1234",
	} {
		if got := String(line); got != line {
			t.Errorf("changed\n got %q\nfrom %q", got, line)
		}
	}
}

// A hostile line must not take time quadratic in its length: with the limit
// these take milliseconds, without it minutes.
func TestStringIsLinear(t *testing.T) {
	for _, unit := range []string{
		"token_x=", "key:'", "a-token_b=[", "--token-x ", "://", "Bearer ", "password:,", "password:\n", "password: |\n a\n",
		"token={", "api_key={[", `("password", [`, `("password", '`, "--api-key x [", "--api-key x \"", "sk-", "eyJ", "eyJabcdefghi.",
		"curl -u ", "curl ", "login ", "authorization: ", "authorization: AWS ", "authorization: Digest ", "cookie:", "value: ", "name: x, value: ", "?token=",
		"%3D", "<password>", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "abcd\n", body1 + "\n", "Basic ", "a:b@",
		"password=a,", "password=none,", `\"`, "[redacted]", "AKIA", "hf_a_", "http://a:", "api key ",
	} {
		text := strings.Repeat(unit, 1<<16/len(unit))
		String(text)
		Argv([]string{"curl", text})
		KeyLines(strings.Split(text, "\n"))
	}
	long := strings.Repeat("a1", 5000)
	if got, want := String("token_x="+long+" end"), "token_x=[redacted] end"; got != want {
		t.Errorf("a value beyond the limit: got %.60q", got)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{
		"", "api_key=", "api_key=[", "--api-key ", "password:\"a\\", "://:@", "Bearer 1", "\xff=\xfe", "a=b:c=d",
		"Authorization: Bearer abc", "cookie:\x00", "-----BEGIN PRIVATE KEY-----", strings.Repeat("key=", 50),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := String(s)
		if len(once) > len(s)*(len(marker)+1) {
			t.Fatalf("grew from %d to %d bytes", len(s), len(once))
		}
		// A secret under a telling name goes, whatever stands before it.
		const secret = "Zq9Zq9Zq9Zq9Zq9Zq9"
		if got := String(s + "\napi_key=" + secret); strings.Contains(got, secret) {
			t.Fatalf("secret left in %q", got)
		}
	})
}

package redact

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Near misses: what looks like a secret at first sight and has to stay, as an
// operator or a rule reads it.
func TestStringKeeps(t *testing.T) {
	for _, line := range []string{
		"token_count=5 num_tokens: 12 token=5 tokens/s key=value max_tokens=32",
		"forward pass: 12 ms, first pass: warm-up, pass=3",
		"key cache: torch.Size([2, 16]), kv_cache_dtype=fp8_e4m3, key_cache dtype float16, value cache 3 GB",
		"{'key': 'model.layers.0.self_attn.k_proj.weight', 'token': 'hello', 'auth': 'none', 'signature': 'sglang.ready.ready'}",
		"hf_overrides={} hf_transfer is not installed, hf_processor=None, hf_quantizer, hf_hub_download, hf_config_path='/m'",
		"npm_config_cache=/x fw_bw_kernel sk-learn sk-plugin r8_kernel SG.x",
		"commit 45a9d0e0123456789abcdef0123456789abcdef01 revision=0123456789abcdef0123456789abcdef01234567",
		"GET /v1/models?limit=5&page=2&revision=main&code=404 HTTP/1.1",
		"GET https://h/o?sv=2024&se=2026-11-30&sp=r&response-content-disposition=x HTTP/1.1",
		"#token=92 #new-token: 7 (token: 5)",
		"http://127.0.0.1:8000/a@b tcp://h:29500/x http://[::1]:8000/x@y",
		"api_key=None, admin_api_key=None, 'ssl_keyfile_password': None, 'watermark_key': '<redacted>'",
		"public_key=abcdef1234567890abcd cache_key: c1234567890abcdef1234567890",
		"[('api', 'key'), ('tokenizer', 'auto'), ('model', 'm')]",
		"Basic authentication, basic auth, Basic settings: on",
		"curl -k https://h:8000/health and curl -u",
		"eyJhbGciOiJIUzI1NiJ9 alone, eyJ.x",
		"-----BEGIN CERTIFICATE----- no key -----END CERTIFICATE-----",
		"sha256\n" + strings.Repeat("0123456789abcdef", 4) + "\n" + strings.Repeat("fedcba9876543210", 4) + "\n",
		strings.Repeat("-", 64) + "\n" + strings.Repeat("=", 64) + "\n" + strings.Repeat("a", 64) + "\n" + strings.Repeat("b", 64) + "\n",
	} {
		if diff := cmp.Diff(line, String(line)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestArgvKeeps(t *testing.T) {
	for _, argv := range [][]string{
		{"vllm", "serve", "org/model", "--max-tokens", "32", "--served-model-name", "gpt2", "m2", "--tokenizer", "org/tok", "--port", "8000"},
		{"x", "--compilation-config", `{"pass_config": {"fuse_norm": true}, "level": 3}`},
		{"x", "--kv-transfer-config", `{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_port":"1"}`},
		{"x", "--speculative-config", `{"method": "eagle", "num_speculative_tokens": 3, "model": "org/m-3B-Instruct"}`},
		{"x", "--override-kv", "tokenizer.ggml.pre=str:llama3", "--override-kv", "llama.attention.key_length=int:128"},
		{"x", "--ssl-keyfile", "/etc/k.pem", "--key", "/etc/k.pem", "--api-key-file", "/run/k"},
		{"python", "-k", "server", "-u", "train.py", "-a", "x", "-p", "1"},
		{"curl", "-k", "https://h:8000/health", "-s"},
		{"curl", "-k", "localhost"},
		{"python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)", "--multiprocessing-fork"},
		{"sglang::scheduler_TP0"}, {"VLLM::EngineCore"}, {"ray::RayWorkerWrapper.execute_method"},
		{"compile_worker", "--kind=fork", "--workers=32", "--torch-key=Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ1Ng=="},
		{"x", "--revision", "0123456789abcdef0123456789abcdef01234567"},
	} {
		if diff := cmp.Diff(argv, Argv(argv)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// Logs of real servers, none of which holds a secret.
func TestSampleLogsStayAsTheyAre(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "logs", "*.log"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("sample logs: %v, %v", paths, err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var lines []string
		in := bufio.NewScanner(f)
		in.Buffer(nil, 1<<22)
		for in.Scan() {
			lines = append(lines, in.Text())
		}
		for i, key := range KeyLines(lines) {
			if key {
				t.Errorf("%s:%d is no private key: %s", path, i+1, lines[i])
			}
			if diff := cmp.Diff(lines[i], String(lines[i])); diff != "" {
				t.Errorf("%s:%d (-want +got):\n%s", path, i+1, diff)
			}
		}
	}
}

package literal

// usual is text as it stands in most lines of a server's log and never tells
// one line from another. A window that avoids its blocks is compared less
// often.
const usual = "[2026-11-30 17:06:05 TP0] INFO:     127.0.0.1:56290 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n" +
	"(EngineCore pid=10226) (Worker_TP0 pid=10239) INFO 11-30 17:24:48 [core.py:133] WARNING\n" +
	"Decode batch, #running-req: 1, #token: 1024, token usage: 0.00, cuda graph: True, gen throughput (token/s): 63.61, #queue-req: 0,\n" +
	"Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, input throughput (token/s): 3.35\n" +
	"Loading model checkpoint weights from sglang.srt.models /lib/python3.11/site-packages/vllm/ torch\n" +
	"Attempting to acquire lock 140074141761104 on /root/.cache/torch/inductor/locks/cyxlb3uaa6kvoxxvj647upwx.lock\n" +
	"Lock 140074141761104 not acquired on /root/.cache/torch/inductor/locks/cyxlb3uaa6kvoxxvj647upwx.lock, waiting 0.05 seconds ...\n" +
	"Lock 140074141761104 released on /tmp/torchinductor_root/precompiled_headers/locks/cjx4wlkt.lock\n" +
	"Ignore import error when loading sglang.srt.models.qwen3: object has no attribute\n" +
	"Tokenizer for model loaded as generic tokenizers backend, skipping layers for the\n" +
	"slot print_timing: id  0 | task 12 | prompt eval time = 12.34 ms / 10 tokens, launch_slot_, update_slots\n"

// prices says how often a block is expected.
type prices map[uint32]int

// newPrices counts blocks in the usual text, where they are dear, and in the
// strings themselves, as a block of many strings costs as many comparisons.
func newPrices(literals []string, members []int) prices {
	p := prices{}
	for off := 0; off+block <= len(usual); off++ {
		p[blockAt(usual, off)] += 1000
	}
	for _, i := range members {
		for off := 0; off+block <= len(literals[i]); off++ {
			p[blockAt(literals[i], off)]++
		}
	}
	return p
}

// window is the offset of the cheapest run of n blocks in s.
func (p prices) window(s string, n int) int {
	best, bestPrice := 0, -1
	for at := 0; at+n+block-1 <= len(s); at++ {
		sum := 0
		for off := at; off < at+n; off++ {
			sum += p[blockAt(s, off)]
		}
		if bestPrice < 0 || sum < bestPrice {
			best, bestPrice = at, sum
		}
	}
	return best
}

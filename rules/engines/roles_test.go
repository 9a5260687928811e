package engines

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestRole(t *testing.T) {
	type want struct {
		Engine string
		Role   Role
	}
	none := want{}
	tests := []struct {
		argv []string
		libs []string
		want want
		name string
	}{
		{argv: []string{"python", "-m", "sglang.launch_server", "--model-path", "/m"}, want: want{"sglang", Role{Name: "api-server", Head: true}}},
		{argv: []string{"/opt/sglang/bin/python3.11", "-u", "-X", "faulthandler", "-m", "sglang.launch_server"}, want: want{"sglang", Role{Name: "api-server", Head: true}}},
		{argv: []string{"/usr/bin/python3", "/usr/local/bin/sglang", "serve", "org/model"}, want: want{"sglang", Role{Name: "api-server", Head: true}}},
		{argv: []string{"sglang", "serve", "org/model"}, want: want{"sglang", Role{Name: "api-server", Head: true}}},
		{argv: []string{"sglang::scheduler"}, want: want{"sglang", Role{Name: "scheduler", Head: true}}},
		{argv: []string{"sglang::scheduler_TP0"}, want: want{"sglang", Role{Name: "scheduler", Rank: "TP0", Head: true}}},
		{argv: []string{"sglang::scheduler_DP1_PP0_ATTN_CP2_TP13_EP3   "}, want: want{"sglang", Role{Name: "scheduler", Rank: "DP1 PP0 ATTN_CP2 TP13 EP3", Head: true}}},
		{argv: []string{"sglang::detokenizer"}, want: want{"sglang", Role{Name: "detokenizer", Head: true}}},
		{argv: []string{"sglang::detokenizer_router"}, want: want{"sglang", Role{Name: "router", Head: true}}},
		{argv: []string{"sglang::data_parallel_controller"}, want: want{"sglang", Role{Name: "data-parallel-controller", Head: true}}},
		{argv: []string{"sglang::tokenizer_worker:4711"}, want: want{"sglang", Role{Name: "worker", Head: true}}},
		{argv: []string{"bash", "-c", "python -m sglang.launch_server --model-path /m"}, want: none},
		{argv: []string{"strace", "-f", "python", "-m", "sglang.launch_server"}, want: none},
		{argv: []string{"python", "bench.py", "-m", "sglang.launch_server"}, want: none},
		{argv: []string{"python", "-m", "sglang.bench_serving"}, want: none},
		{argv: []string{"vim", "sglang"}, want: none},

		{argv: []string{"/opt/vllm/bin/python3", "/opt/vllm/bin/vllm", "serve", "/models/smollm2"}, want: want{"vllm", Role{Name: "api-server", Head: true}}},
		{argv: []string{"python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "/m"}, want: want{"vllm", Role{Name: "api-server", Head: true}}},
		{argv: []string{"VLLM::EngineCore"}, want: want{"vllm", Role{Name: "engine-core", Head: true}}},
		{argv: []string{"VLLM::EngineCore_DP1"}, want: want{"vllm", Role{Name: "engine-core", Rank: "EngineCore_DP1", Head: true}}},
		{argv: []string{"VLLM::Worker"}, want: want{"vllm", Role{Name: "worker", Head: true}}},
		{argv: []string{"VLLM::Worker_TP0"}, want: want{"vllm", Role{Name: "worker", Rank: "Worker_TP0", Head: true}}},
		{argv: []string{"VLLM::APIServer_2"}, want: want{"vllm", Role{Name: "api-server", Rank: "APIServer_2", Head: true}}},
		{argv: []string{"VLLM::DPCoordinator"}, want: want{"vllm", Role{Name: "data-parallel-controller", Head: true}}},
		{argv: []string{"python3", "/opt/vllm/bin/vllm", "bench", "serve"}, want: none},

		{argv: []string{"/usr/bin/llama-server", "-m", "m.gguf"}, want: want{"llamacpp", Role{Name: "api-server", Head: true}}},
		{argv: []string{"python", "serve.py"}, libs: []string{"libpython3.11.so", "xllamacpp.cpython-311-x86_64-linux-gnu.so"}, want: want{"llamacpp", Role{Name: "api-server", Head: true}}},
		{argv: []string{"python", "serve.py"}, libs: []string{"libpython3.11.so", "libtorch.so"}, want: none},
		{argv: []string{"gdb", "llama-server"}, libs: []string{"libllama.so"}, want: none},
		{argv: nil, want: none},
		// A zombie has no command line left, and 15 bytes of its title.
		{name: "sglang::schedul", want: want{"sglang", Role{Name: "scheduler", Head: true}}},
		{name: "sglang::detoken", want: want{"sglang", Role{Name: "detokenizer", Head: true}}},
		{name: "sglang::data_pa", want: want{"sglang", Role{Name: "data-parallel-controller", Head: true}}},
		{name: "sglang::sched", want: want{"sglang", Role{Name: "helper"}}},
		{name: "VLLM::EngineCor", want: want{"vllm", Role{Name: "engine-core", Head: true}}},
		{name: "VLLM::Worker_TP", want: want{"vllm", Role{Name: "worker", Head: true}}},
		{name: "VLLM::Worker", want: want{"vllm", Role{Name: "worker", Head: true}}},
		{name: "VLLM::DPCoordin", want: want{"vllm", Role{Name: "data-parallel-controller", Head: true}}},
		{name: "python3", want: none},
		// It is in the tree of every engine and must not decide which it is.
		{argv: []string{"python3", "-c", "from multiprocessing.resource_tracker import main;main(27)"}, want: none},
	}
	for _, tt := range tests {
		p := &evidence.Process{Argv: tt.argv, Libraries: tt.libs, Name: tt.name}
		var got want
		for _, e := range All() {
			if e.Role == nil {
				continue
			}
			if r, ok := e.Role(p); ok {
				got = want{e.ID, r}
				break
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q %q (-want +got):\n%s", tt.argv, tt.libs, diff)
		}
	}
}

func TestIsHelper(t *testing.T) {
	tests := []struct {
		argv []string
		want bool
	}{
		{[]string{"python3", "-c", "from multiprocessing.resource_tracker import main;main(27)"}, true},
		{[]string{"python3", "/lib/torch/_inductor/compile_worker/__main__.py", "--kind=fork", "--parent=7"}, true},
		{[]string{"VLLM::Worker_TP0"}, false},
		{[]string{"python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"}, false},
		{nil, false},
	}
	for _, tt := range tests {
		if got := IsHelper(&evidence.Process{Argv: tt.argv}); got != tt.want {
			t.Errorf("IsHelper(%q) = %v", tt.argv, got)
		}
	}
}

func TestHeads(t *testing.T) {
	tests := []struct {
		engine string
		argv   []string
		want   []Head
	}{
		{"sglang", []string{"python", "-m", "sglang.launch_server"}, []Head{{"scheduler", 1, "--tp 1"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp", "8"}, []Head{{"scheduler", 8, "--tp 8"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp-size=4", "--pp-size", "2"}, []Head{{"scheduler", 8, "--tp 4 --pp 2"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp", "2", "--dp", "4"}, []Head{{"scheduler", 8, "--tp 2 --dp 4"}, {"data-parallel-controller", 1, "--dp 4"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp", "8", "--dp", "8", "--enable-dp-attention"}, []Head{{"scheduler", 8, "--tp 8 --dp 8 --enable-dp-attention"}, {"data-parallel-controller", 1, "--dp 8"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp", "16", "--nnodes", "2", "--node-rank", "0"}, []Head{{"scheduler", 8, "--tp 16 --nnodes 2"}, {"detokenizer", 1, "every server has one"}}},
		{"sglang", []string{"--tp", "16", "--nnodes", "2", "--node-rank", "1"}, []Head{{"scheduler", 8, "--tp 16 --nnodes 2"}}},
		{"sglang", []string{"--tp", "2", "--detokenizer-worker-num", "3"}, []Head{{"scheduler", 2, "--tp 2"}, {"detokenizer", 3, "--detokenizer-worker-num 3"}}},
		{"sglang", []string{"--config", "server.yaml"}, nil},
		{"sglang", []string{"--tp", "3", "--nnodes", "2"}, nil},
		{"sglang", []string{"--tp", "-1"}, nil},

		{"vllm", []string{"vllm", "serve", "/m"}, []Head{{"engine-core", 1, "every server has one"}}},
		{"vllm", []string{"vllm", "serve", "/m", "-tp", "8"}, []Head{{"engine-core", 1, "every server has one"}, {"worker", 8, "--tensor-parallel-size 8"}}},
		{"vllm", []string{"--tensor-parallel-size", "4", "--pipeline-parallel-size=2"}, []Head{{"engine-core", 1, "every server has one"}, {"worker", 8, "--tensor-parallel-size 4 --pipeline-parallel-size 2"}}},
		{"vllm", []string{"-tp", "2", "--data-parallel-size", "4", "--data-parallel-size-local", "2"}, []Head{
			{"engine-core", 2, "--data-parallel-size 4 --data-parallel-size-local 2"},
			{"worker", 4, "--tensor-parallel-size 2 --data-parallel-size 4 --data-parallel-size-local 2"}}},
		{"vllm", []string{"-tp", "16", "--nnodes", "2"}, []Head{{"engine-core", 1, "every server has one"}, {"worker", 8, "--tensor-parallel-size 16 --nnodes 2"}}},
		{"vllm", []string{"-tp", "8", "--distributed-executor-backend", "ray"}, nil},
		{"vllm", []string{"--config", "c.yaml"}, nil},
		{"vllm", []string{"--headless", "-tp", "8"}, nil},
	}
	for _, tt := range tests {
		got := ByID(tt.engine).Heads(CommandLine{Argv: tt.argv})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.engine, tt.argv, diff)
		}
	}
}

func TestByID(t *testing.T) {
	for _, id := range []string{"sglang", "vllm", "llamacpp", "common"} {
		if e := ByID(id); e == nil || e.ID != id {
			t.Errorf("ByID(%q) = %v", id, e)
		}
	}
	if e := ByID("nobody"); e != nil {
		t.Errorf("ByID of nobody is %s", e.ID)
	}
}

func TestCommandLine(t *testing.T) {
	c := CommandLine{Argv: []string{"vllm", "serve", "/m", "--port=8001", "--seed", "-1", "--enforce-eager", "--tp", "x", "-n", "2"}}
	value := func(names ...string) string {
		v, ok := c.Value(names...)
		if !ok {
			return "absent"
		}
		return v
	}
	for _, tt := range []struct{ got, want string }{
		{value("--port"), "8001"}, {value("--seed"), "-1"}, {value("--enforce-eager"), ""}, {value("--host"), "absent"},
		{value("--nnodes", "-n"), "2"}, {value("--por"), "absent"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
	if n := c.Int(7, "--tp"); n != 7 {
		t.Errorf("Int of no number = %d", n)
	}
	if m, ok := c.After("serve"); !ok || m != "/m" {
		t.Errorf("After = %q, %v", m, ok)
	}
}

// A distortion names a flag or a variable, and says what it does.
func TestDistortions(t *testing.T) {
	for _, e := range All() {
		seen := map[string]bool{}
		for _, d := range e.Distortions {
			if (d.Flag == "") == (d.Env == "") || d.Says == "" || seen[d.Flag+d.Env] {
				t.Errorf("%s: %+v", e.ID, d)
			}
			seen[d.Flag+d.Env] = true
		}
		if len(e.Distortions) == 0 {
			t.Errorf("%s has none", e.ID)
		}
	}
}

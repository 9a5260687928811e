package caches

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

// python is a process of a Python server with that environment.
func python(pid int, env ...string) evidence.Process {
	p := evidence.Process{PID: pid, Name: "python3", Argv: []string{"python3", "server.py"}, Env: map[string]string{}, MntNS: "mnt:[1]"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		p.Env[name] = value
	}
	return p
}

func TestFind(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  []string
		want map[string]string // path by library
		not  []string
	}{
		{"defaults", []string{"HOME=/root", "USER=root"}, map[string]string{
			"torch extensions": "/root/.cache/torch_extensions", "torch inductor": "/tmp/torchinductor_root", "Triton": "/root/.triton/cache",
			"flashinfer": "/root/.cache/flashinfer", "DeepGEMM": "/root/.deep_gemm", "DeepGEMM of SGLang": "/root/.cache/deep_gemm",
			"tvm-ffi": "/root/.cache/tvm-ffi", "vLLM": "/root/.cache/vllm", "CUDA driver": "/root/.nv/ComputeCache",
			"Hugging Face hub": "/root/.cache/huggingface/hub", "ModelScope": "/root/.cache/modelscope", "llama.cpp": "/root/.cache/llama.cpp",
			"Ollama": "/root/.ollama/models"}, nil},
		{"all caches moved", []string{"HOME=/root", "XDG_CACHE_HOME=/c"}, map[string]string{
			"torch extensions": "/c/torch_extensions", "vLLM": "/c/vllm", "Hugging Face hub": "/c/huggingface/hub",
			// These do not ask for it.
			"flashinfer": "/root/.cache/flashinfer", "DeepGEMM": "/root/.deep_gemm"}, []string{"torch inductor"}},
		{"each by its own", []string{"HOME=/root", "XDG_CACHE_HOME=/c", "TORCH_EXTENSIONS_DIR=/e", "FLASHINFER_WORKSPACE_BASE=/f", "HF_HOME=/h",
			"TRITON_HOME=/t", "TMPDIR=/scratch", "LOGNAME=a/b", "USER=c", "DG_JIT_CACHE_DIR=~/dg"}, map[string]string{
			"torch extensions": "/e", "flashinfer": "/f/.cache/flashinfer", "Hugging Face hub": "/h/hub", "Triton": "/t/.triton/cache",
			"torch inductor": "/scratch/torchinductor_a_b", "DeepGEMM": "/root/dg"}, nil},
		{"the hub, three ways", []string{"HF_HOME=/h", "HUGGINGFACE_HUB_CACHE=/old", "HF_HUB_CACHE=/new"}, map[string]string{"Hugging Face hub": "/new"}, []string{"torch extensions"}},
		{"relative", []string{"HOME=/root", "TORCH_EXTENSIONS_DIR=build"}, nil, []string{"nowhere"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := map[string]string{}
			for _, c := range Find([]evidence.Process{python(1, tc.env...)}) {
				got[c.Library] = c.Path
			}
			for lib, dir := range tc.want {
				if got[lib] != dir {
					t.Errorf("%s: %q, want %q", lib, got[lib], dir)
				}
			}
			for _, lib := range tc.not {
				if got[lib] != "" {
					t.Errorf("%s: %q, want none", lib, got[lib])
				}
			}
		})
	}
}

// A native server has the caches of native programs, and those that are named.
func TestFindNative(t *testing.T) {
	p := python(1, "HOME=/root", "TRITON_CACHE_DIR=/t")
	p.Name, p.Argv = "llama-server", []string{"/usr/bin/llama-server"}
	var libs []string
	for _, c := range Find([]evidence.Process{p}) {
		libs = append(libs, c.Library)
	}
	if want := []string{"Triton", "CUDA driver", "Hugging Face hub", "llama.cpp", "Ollama"}; !slices.Equal(libs, want) {
		t.Errorf("%v, want %v", libs, want)
	}
}

// Ranks share their caches; one in another mount namespace has its own.
func TestFindOnce(t *testing.T) {
	a, b, other := python(1, "HOME=/root"), python(2, "HOME=/root"), python(3, "HOME=/root")
	other.MntNS = "mnt:[2]"
	by := map[int]int{}
	for _, c := range Find([]evidence.Process{a, b, other}) {
		by[c.PID]++
	}
	if by[1] == 0 || by[2] != 0 || by[1] != by[3] {
		t.Errorf("%v", by)
	}
}

func TestNames(t *testing.T) {
	torch, hub, ms := libraryNamed("torch extensions"), libraryNamed("Hugging Face hub"), libraryNamed("ModelScope")
	for _, tc := range []struct {
		lib  *library
		path string
		lock evidence.LockFileKind
		part bool
	}{
		{torch, "/ext/lock", evidence.LockPresence, false},
		{torch, "/ext/lock.so", "", false},
		{torch, "/ext/x.lock", evidence.LockKernel, false},
		{hub, "/.locks/models--x/abc.lock", evidence.LockKernel, false},
		{hub, "/models--x/lock", "", false},
		{hub, "/models--x/blobs/abc.incomplete", "", true},
		{hub, "/models--x/blobs/incomplete", "", false},
		{ms, "/hub/._____temp/org/model/a.safetensors", "", true},
		{ms, "/hub/org/model/a.safetensors", "", false},
	} {
		if got := tc.lib.lockKind(tc.path); got != tc.lock {
			t.Errorf("%s: lock %q", tc.path, got)
		}
		if got := tc.lib.isPartial(path.Split(tc.path)); got != tc.part {
			t.Errorf("%s: partial %v", tc.path, got)
		}
	}
}

func FuzzIn(f *testing.F) {
	f.Add("/root", "/c", "~/x", "a:b")
	f.Add("", "relative", "/", "")
	f.Fuzz(func(t *testing.T, home, xdg, value, user string) {
		env := map[string]string{"HOME": home, "XDG_CACHE_HOME": xdg, "TORCH_EXTENSIONS_DIR": value, "TMPDIR": value, "USER": user}
		for i := range libraries {
			if dir, _ := libraries[i].in(env); dir != "" && dir[0] != '/' {
				t.Errorf("%s: %q is no absolute path", libraries[i].name, dir)
			}
		}
	})
}

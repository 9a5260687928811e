package caches

import (
	"path"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// library is one that keeps a cache.
type library struct {
	name string
	kind evidence.CacheKind
	// places are tried in order; the first that the environment gives is it.
	places []place
	// native: programs that are not Python use it too.
	native bool
	// baton: a file called "lock" is held as long as it exists.
	baton bool
	// suffixes are endings of files whose download is not complete; within is a
	// directory in which all files are such.
	suffixes []string
	within   string
}

// place is where a variable puts a cache: below its value. Variable "" is the
// home directory, "XDG_CACHE_HOME" stands for ~/.cache where it is not set.
type place struct {
	variable, below string
}

// libraries are all that are known. Read in their source: torch/_appdirs.py and
// cpp_extension.py, torch/_inductor/runtime/cache_dir_utils.py,
// flashinfer/jit/env.py, DeepGEMM csrc/jit/compiler.hpp,
// huggingface_hub/constants.py. The others are as excerpts and documentation
// have them: a place that is wrong is one that does not exist.
var libraries = []library{
	{name: "torch extensions", kind: evidence.CacheBuild, baton: true,
		places: []place{{"TORCH_EXTENSIONS_DIR", ""}, {"XDG_CACHE_HOME", "torch_extensions"}}},
	{name: "torch inductor", kind: evidence.CacheBuild, places: []place{{"TORCHINDUCTOR_CACHE_DIR", ""}, {"TMPDIR", inductorDefault}}},
	{name: "Triton", kind: evidence.CacheBuild, places: []place{{"TRITON_CACHE_DIR", ""}, {"TRITON_HOME", ".triton/cache"}, {"", ".triton/cache"}}},
	{name: "flashinfer", kind: evidence.CacheBuild, places: []place{{"FLASHINFER_WORKSPACE_BASE", ".cache/flashinfer"}, {"", ".cache/flashinfer"}}},
	{name: "DeepGEMM", kind: evidence.CacheBuild, places: []place{{"DG_JIT_CACHE_DIR", ""}, {"", ".deep_gemm"}}},
	{name: "DeepGEMM of SGLang", kind: evidence.CacheBuild, places: []place{{"SGLANG_DG_CACHE_DIR", ""}, {"", ".cache/deep_gemm"}}},
	{name: "tvm-ffi", kind: evidence.CacheBuild, places: []place{{"TVM_FFI_CACHE_DIR", ""}, {"", ".cache/tvm-ffi"}}},
	{name: "tilelang", kind: evidence.CacheBuild, places: []place{{"TILELANG_CACHE_DIR", ""}, {"", ".tilelang/cache"}}},
	{name: "vLLM", kind: evidence.CacheBuild, places: []place{{"VLLM_CACHE_ROOT", ""}, {"XDG_CACHE_HOME", "vllm"}}},
	{name: "SGLang", kind: evidence.CacheBuild, places: []place{{"SGLANG_CACHE_DIR", ""}, {"", ".cache/sglang"}}},
	{name: "CUDA driver", kind: evidence.CacheBuild, native: true, places: []place{{"CUDA_CACHE_PATH", ""}, {"", ".nv/ComputeCache"}}},
	{name: "Hugging Face hub", kind: evidence.CacheDownload, native: true, suffixes: []string{".incomplete", ".downloadInProgress"},
		places: []place{{"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "hub"}, {"XDG_CACHE_HOME", "huggingface/hub"}}},
	{name: "ModelScope", kind: evidence.CacheDownload, within: "._____temp", places: []place{{"MODELSCOPE_CACHE", ""}, {"", ".cache/modelscope"}}},
	{name: "llama.cpp", kind: evidence.CacheDownload, native: true, suffixes: []string{".downloadInProgress"},
		places: []place{{"LLAMA_CACHE", ""}, {"XDG_CACHE_HOME", "llama.cpp"}}},
	{name: "Ollama", kind: evidence.CacheDownload, native: true, suffixes: []string{"-partial"},
		places: []place{{"OLLAMA_MODELS", ""}, {"", ".ollama/models"}}},
}

// inductorDefault stands for torchinductor_USER in the directory for temporary
// files.
const inductorDefault = "torchinductor_"

// Variables are the environment variables that Find needs of each process.
func Variables() []string {
	names := []string{"HOME", "LOGNAME", "USER"}
	for _, l := range libraries {
		for _, p := range l.places {
			if p.variable != "" {
				names = append(names, p.variable)
			}
		}
	}
	return names
}

// in is where the environment of a process puts the cache of l; "" if it does
// not say. named is the variable that names the place, "" for the default.
func (l *library) in(env map[string]string) (dir, named string) {
	for i, p := range l.places {
		base := env[p.variable]
		switch {
		case p.variable == "":
			base = env["HOME"]
		case base != "":
			// Set: it names the place, unless it moves everybody's.
			if p.variable != "XDG_CACHE_HOME" && p.variable != "TMPDIR" {
				named = p.variable
			}
		case p.variable == "XDG_CACHE_HOME" && env["HOME"] != "":
			base = path.Join(env["HOME"], ".cache")
		case p.variable == "TMPDIR":
			base = "/tmp"
		}
		if base == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(base, "~/"); ok {
			base = path.Join(env["HOME"], rest)
		}
		below := l.places[i].below
		if below == inductorDefault {
			user := firstOf(env["LOGNAME"], env["USER"])
			if user == "" {
				continue
			}
			below += strings.Map(plainName, user)
		}
		if !path.IsAbs(base) {
			continue // relative to where it was then
		}
		return path.Join(base, below), named
	}
	return "", ""
}

// plainName is how inductor spells a user's name.
func plainName(r rune) rune {
	if strings.ContainsRune(`\/:*?"<>|`, r) {
		return '_'
	}
	return r
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

// isPartial tells a file of a download under way by its name and directory.
func (l *library) isPartial(dir, name string) bool {
	for _, s := range l.suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return l.within != "" && strings.Contains("/"+dir+"/", "/"+l.within+"/")
}

// lockKind is "" for a file that is no lock.
func (l *library) lockKind(file string) evidence.LockFileKind {
	name := file[strings.LastIndexByte(file, '/')+1:]
	switch {
	case l.baton && name == "lock":
		return evidence.LockPresence
	case strings.HasSuffix(name, ".lock"):
		return evidence.LockKernel
	}
	return ""
}

func libraryNamed(name string) *library {
	for i := range libraries {
		if libraries[i].name == name {
			return &libraries[i]
		}
	}
	return &library{}
}

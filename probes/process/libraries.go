package process

import (
	"path"
	"slices"
	"strings"
)

// tellingLibraries are parts of the base names of shared objects that tell an
// engine or a runtime.
var tellingLibraries = []string{
	// GPU drivers and collectives.
	"libcuda.", "libcudart", "libcublas", "libcudnn", "libnccl", "libnvidia-ml", "libnvshmem", "libamdhip", "librccl",
	"libhsa-runtime", "librocm_smi", "libze_loader", "libhccl",
	// Frameworks and engines.
	"libtorch", "libc10", "libpython", "libtriton", "libtensorrt", "libnvinfer", "libtvm", "llama", "ggml",
	"_turbomind", "sgl_kernel", "flashinfer", "libonnxruntime", "libopenvino.", "libmlx",
	// Threads, messages, memory.
	"libmpi", "libgomp", "libomp", "libiomp5", "libucp", "libucs", "libuct", "libucx", "libfabric", "libibverbs",
	"libjemalloc", "libtcmalloc", "libmimalloc", "libfuse",
	// Sanitizers, Valgrind, and what NVIDIA's profilers load into a process.
	"libasan.", "libtsan.", "libubsan.", "liblsan.", "libhwasan.", "vgpreload_", "libToolsInjection", "libsanitizer-collection", "libTreeLauncher",
}

// maxLibraries bounds the list.
const maxLibraries = 64

// libraries picks the base names of mapped files that tell something.
func libraries(maps []mapping) []string {
	var found []string
	last := ""
	for i := range maps {
		p := maps[i].Path
		if p == last || p == "" || p[0] != '/' {
			continue
		}
		last = p
		name := path.Base(p)
		if !strings.Contains(name, ".so") || slices.Contains(found, name) {
			continue
		}
		if slices.ContainsFunc(tellingLibraries, func(part string) bool { return strings.Contains(name, part) }) {
			found = append(found, name)
		}
		if len(found) == maxLibraries {
			break
		}
	}
	slices.Sort(found)
	return found
}

// libcFile finds the mapped C library: glibc's libc.so.6 or libc-2.31.so, or
// musl's loader, which is its C library. Nil for a static executable.
func libcFile(maps []mapping) (m *mapping, musl bool) {
	for i := range maps {
		switch name := path.Base(maps[i].Path); {
		case isMusl(name):
			return &maps[i], true
		case isGlibc(name):
			return &maps[i], false
		}
	}
	return nil, false
}

// isGlibc tells libc.so.6, and libc-2.31.so as it was called up to glibc 2.33.
func isGlibc(name string) bool {
	return name == "libc.so.6" || strings.HasPrefix(name, "libc-2.") && strings.HasSuffix(name, ".so")
}

// isPthread tells libpthread.so.0, and libpthread-2.31.so as it was called.
// Since glibc 2.34 libc.so.6 holds its functions.
func isPthread(name string) bool {
	return name == "libpthread.so.0" || strings.HasPrefix(name, "libpthread-2.") && strings.HasSuffix(name, ".so")
}

// glibcVersion reads the version that old glibcs bear in their file name.
func glibcVersion(name string) (string, bool) {
	v, ok := strings.CutPrefix(name, "libc-")
	if !ok {
		return "", false
	}
	v, ok = strings.CutSuffix(v, ".so")
	return v, ok && v != ""
}

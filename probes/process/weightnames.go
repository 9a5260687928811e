package process

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// weightKind says how sure a file name makes it that the file holds weights.
type weightKind int

const (
	noWeights weightKind = iota
	// maybeWeights hold weights if they are at least minMaybe bytes large: the
	// ending is used for small things as well.
	maybeWeights
	// surelyWeights hold weights whatever their size.
	surelyWeights
)

// minMaybe keeps out tokenizers, Python's .pth path files, adapter indexes.
const minMaybe = 64 << 20

var (
	sureEndings = []string{".safetensors", ".gguf", ".ggml"}
	// .engine and .plan are TensorRT's, .distcp and .ckpt PyTorch's, .npz MLX's.
	maybeEndings = []string{".pt", ".pth", ".npz", ".ckpt", ".distcp", ".onnx", ".engine", ".plan", ".llamafile"}
	// binNames are how weights in .bin files are called; .bin alone says
	// nothing.
	binNames = []string{"pytorch_model", "consolidated", "model", "diffusion_pytorch_model", "adapter_model", "ggml-"}
	// blob is a file named by its content in the caches of Ollama
	// (blobs/sha256-…) and the Hugging Face hub (blobs/…, which .safetensors
	// names link to: maps and fd show only the blob).
	blob = regexp.MustCompile(`/blobs/(sha256[-:])?[0-9a-f]{64}$`)
)

// sitePackages are the directories whose .pth files Python reads (site module).
var sitePackages = regexp.MustCompile(`/(site|dist)-packages/[^/]*$`)

// weightsByName judges a path; more are endings to be taken for weights as
// well.
func weightsByName(p string, more []string) weightKind {
	if p == "" || p[0] != '/' {
		return noWeights
	}
	name := strings.ToLower(path.Base(p))
	endsIn := func(ending string) bool { return strings.HasSuffix(name, ending) }
	switch {
	case slices.ContainsFunc(sureEndings, endsIn), slices.ContainsFunc(more, endsIn):
		return surelyWeights
	case endsIn(".pth") && sitePackages.MatchString(p):
		return noWeights // Python's own path files, which it opens while it starts
	case slices.ContainsFunc(maybeEndings, endsIn):
		return maybeWeights
	case strings.HasSuffix(name, ".bin") && slices.ContainsFunc(binNames, func(n string) bool { return strings.HasPrefix(name, n) }):
		return maybeWeights
	case strings.Contains(p, "/blobs/") && blob.MatchString(p):
		return maybeWeights
	}
	return noWeights
}

// holdsWeights judges a path and a size; a size that is not known (nil) is
// taken for large.
func holdsWeights(p string, size *uint64, more []string) bool {
	switch weightsByName(p, more) {
	case surelyWeights:
		return true
	case maybeWeights:
		return size == nil || *size >= minMaybe
	}
	return false
}

// formatOf is the name of a weight file's format: "safetensors", "gguf", or
// "bin" for everything that is a pickle or the like.
func formatOf(p string) string {
	switch name := strings.ToLower(path.Base(p)); {
	case strings.HasSuffix(name, ".safetensors"):
		return "safetensors"
	case strings.HasSuffix(name, ".gguf"), strings.HasSuffix(name, ".ggml"), strings.HasPrefix(name, "sha256"):
		return "gguf"
	}
	return "bin"
}

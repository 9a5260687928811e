package process

import "testing"

func TestHoldsWeights(t *testing.T) {
	size := func(n uint64) *uint64 { return &n }
	const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, tc := range []struct {
		path string
		size *uint64
		want bool
	}{
		{"/m/model-00001-of-00064.safetensors", size(1 << 20), true},
		{"/m/Model.GGUF", size(10), true},
		{"/m/ggml-base.bin", size(140 << 20), true},
		{"/m/pytorch_model-00001-of-00002.bin", size(9 << 30), true},
		{"/m/pytorch_model.bin", nil, true},
		{"/m/adapter_model.bin", size(1 << 20), false},
		{"/m/vocab.bin", size(9 << 30), false},
		{"/m/consolidated.00.pth", size(13 << 30), true},
		{"/v/site-packages/distutils-precedence.pth", size(151), false},
		{"/v/site-packages/nvidia_cutlass_dsl_packages.pth", nil, false},
		{"/v/site-packages/whisper/large.pth", nil, true},
		{"/m/rank0.engine", size(9 << 30), true},
		{"/root/.ollama/models/blobs/sha256-" + hash, size(92 << 20), true},
		{"/root/.ollama/models/blobs/sha256-" + hash, size(1400), false},
		{"/root/.cache/huggingface/hub/models--a--b/blobs/" + hash, size(4 << 30), true},
		{"/root/.cache/huggingface/hub/models--a--b/blobs/" + hash, size(17 << 20), false}, // a tokenizer
		{"/root/.cache/huggingface/hub/models--a--b/blobs/" + hash + ".incomplete", nil, false},
		{"/m/model.safetensors.index.json", size(1 << 30), false},
		{"socket:[1]", nil, false},
		{"model.gguf", nil, false},
		{"", nil, false},
	} {
		if got := holdsWeights(tc.path, tc.size, nil); got != tc.want {
			t.Errorf("%s: %v", tc.path, got)
		}
	}
	if !holdsWeights("/m/a.mine", size(1), []string{".mine"}) {
		t.Error("an ending that was asked for")
	}
}

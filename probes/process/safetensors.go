package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// This file runs in the child.

// maxSafetensorsHeader is the format's own limit on its JSON header.
const maxSafetensorsHeader = 100 << 20

// modelHeader is what the header of a model file says.
type modelHeader struct {
	Expected uint64
	Tensors  int
	DTypes   map[string]uint64
}

// maxDTypes bounds how many types of tensors are told apart.
const maxDTypes = 64

func (h *modelHeader) add(dtype string, bytes uint64) {
	if h.DTypes == nil {
		h.DTypes = map[string]uint64{}
	}
	if _, known := h.DTypes[dtype]; known || len(h.DTypes) < maxDTypes {
		if sum := h.DTypes[dtype] + bytes; sum >= bytes {
			h.DTypes[dtype] = sum
		}
	}
}

// readSafetensors reads a safetensors header of n bytes: a JSON object that
// gives each tensor its type and its place in the data behind the header
// (https://huggingface.co/docs/safetensors, "Format"). r stands behind the
// eight bytes of the length. What was read until an error came is in the
// header.
func readSafetensors(r io.Reader, n uint64) (modelHeader, error) {
	h := modelHeader{Expected: 8 + n}
	in := json.NewDecoder(io.LimitReader(r, int64(n)))
	begin, err := in.Token()
	if err != nil {
		return h, cutOff(err)
	}
	if begin != json.Delim('{') {
		return h, errors.New("the header is no JSON object")
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return h, cutOff(err)
		}
		if name == "__metadata__" {
			var skip json.RawMessage
			if err := in.Decode(&skip); err != nil {
				return h, cutOff(err)
			}
			continue
		}
		var t struct {
			DType   string   `json:"dtype"`
			Offsets []uint64 `json:"data_offsets"`
		}
		if err := in.Decode(&t); err != nil {
			return h, cutOff(err)
		}
		if len(t.Offsets) != 2 || t.Offsets[1] < t.Offsets[0] || t.Offsets[1] > math.MaxInt64-8-n {
			return h, errors.New("the header gives a tensor an impossible place")
		}
		h.Tensors++
		h.add(plainName(t.DType), t.Offsets[1]-t.Offsets[0])
		h.Expected = max(h.Expected, 8+n+t.Offsets[1])
	}
	if _, err := in.Token(); err != nil {
		return h, cutOff(err)
	}
	return h, nil
}

// cutOff says the same for all ways in which a file ends too early.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCutOff
	}
	return fmt.Errorf("the header cannot be read: %w", err)
}

var errCutOff = errors.New("the file ends within its header")

// plainName keeps a type's name if it looks like one: it becomes a key of a
// report.
func plainName(s string) string {
	if len(s) == 0 || len(s) > 16 {
		return "other"
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '_' {
			return "other"
		}
	}
	return s
}

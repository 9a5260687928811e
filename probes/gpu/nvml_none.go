//go:build !cgo

package gpu

import (
	"context"
	"encoding/json"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// Child makes the handler of the child process. NVML is loaded with dlopen, of
// which a binary without cgo has none.
func Child() probes.Handler {
	return func(context.Context, json.RawMessage, func(string)) (any, error) {
		return opened{
			Status: evidence.Unsupported,
			Detail: "GPU not read in this build (built without cgo)",
			Hint:   "CGO_ENABLED=1 go build ./cmd/whyhang",
		}, nil
	}
}

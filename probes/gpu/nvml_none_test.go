//go:build !cgo

package gpu

import (
	"testing"

	"github.com/whyhang/whyhang/probes/evidence"
)

func TestBuildWithoutCgoSaysSo(t *testing.T) {
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if gpu != nil || frames != nil {
		t.Errorf("got GPUs: %v %v", gpu, frames)
	}
	want := "GPU not read in this build (built without cgo)"
	if run.Status != evidence.Unsupported || run.Detail != want || run.Hint == "" {
		t.Errorf("run is %+v, want unsupported, %q and a hint", run, want)
	}
}

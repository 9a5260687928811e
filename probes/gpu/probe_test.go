//go:build cgo

package gpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/gpu/nvmlstub"
)

func ptr[T any](v T) *T { return &v }

func gib(n float64) *uint64 { return ptr(uint64(n * (1 << 30))) }

func TestHealthyDriver(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "pids=17,4242")
	p := start(t)
	gpu, frames, run := p.Devices(t.Context(), []int{4242})
	if run.Status != evidence.OK || run.Name != evidence.ProbeGPU || run.Detail != "" {
		t.Errorf("run is %+v", run)
	}
	if gpu == nil || len(gpu.Devices) != 8 || len(frames) != 8 {
		t.Fatalf("want 8 GPUs, got %+v and %d frames", gpu, len(frames))
	}
	if gpu.Driver != "595.45.04" || gpu.Library != "NVML" || gpu.Child != nil {
		t.Errorf("driver %q library %q child %v", gpu.Driver, gpu.Library, gpu.Child)
	}
	device := evidence.GPUDevice{
		Index: 5, UUID: "GPU-00000000-0000-4000-8000-000000000005",
		Name:  "NVIDIA RTX PRO 6000 Blackwell Server Edition",
		BusID: "00000000:15:00.0", MemoryTotalBytes: gib(96), PowerLimitW: ptr(600.0),
	}
	if d := cmp.Diff(device, gpu.Devices[5]); d != "" {
		t.Errorf("GPU 5 (-want +got):\n%s", d)
	}
	frame := evidence.GPUFrame{
		Index: 5, MemoryUsedBytes: gib(76), MemoryReservedBytes: gib(0.5),
		UtilPercent: ptr(0), MemoryUtilPercent: ptr(0), PowerW: ptr(45.0),
		SMClockMHz: ptr(2430), MemoryClockMHz: ptr(12481), TemperatureC: ptr(41), ClockReasons: ptr(uint64(1)),
		Processes: []evidence.GPUProcess{
			{PID: 17, MemoryUsedBytes: gib(38)},
			{PID: 4242, MemoryUsedBytes: gib(38), InTree: true},
		},
	}
	if d := cmp.Diff(frame, frames[5]); d != "" {
		t.Errorf("frame of GPU 5 (-want +got):\n%s", d)
	}
	if d := cmp.Diff(frames, p.Look(t.Context())); d != "" {
		t.Errorf("a later look at the same state differs (-first +later):\n%s", d)
	}
}

func TestOldLibraryLacksFunctions(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.BuildOld(t), "gpus=1;pids=9")
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if run.Status != evidence.Partial || gpu == nil || len(frames) != 1 {
		t.Fatalf("run is %+v with %d frames", run, len(frames))
	}
	frame := evidence.GPUFrame{
		MemoryUsedBytes: gib(76.5), // version 1 counts what the driver keeps
		UtilPercent:     ptr(0), MemoryUtilPercent: ptr(0), PowerW: ptr(45.0), TemperatureC: ptr(41), ClockReasons: ptr(uint64(1)),
		Processes: []evidence.GPUProcess{{PID: 9, MemoryUsedBytes: gib(76)}},
	}
	if d := cmp.Diff(frame, frames[0]); d != "" {
		t.Errorf("frame (-want +got):\n%s", d)
	}
	want := []string{
		"bus id (nvmlDeviceGetPciInfo)", "power limit (nvmlDeviceGetEnforcedPowerLimit)",
		"SM clock (nvmlDeviceGetClockInfo)", "memory clock (nvmlDeviceGetClockInfo)",
	}
	var got []string
	for _, u := range gpu.Devices[0].Unread {
		got = append(got, u.What)
		if u.Status != evidence.Unsupported || u.Why != "not in this driver's library" {
			t.Errorf("%+v", u)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unread (-want +got):\n%s", d)
	}
}

func TestUnsupportedFactKeepsLibrarysWords(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "gpus=1;fail=nvmlDeviceGetUtilizationRates:3,nvmlDeviceGetMemoryInfo_v2:25,nvmlDeviceGetName:4,nvmlDeviceGetComputeRunningProcesses_v3:999")
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if run.Status != evidence.Partial || !strings.Contains(run.Detail, "GPU 0") {
		t.Errorf("run is %+v", run)
	}
	want := []evidence.Unread{
		{What: "name (nvmlDeviceGetName)", Status: evidence.Denied, Why: "Insufficient Permissions", Hint: "sudo nvidia-smi -q -i 0"},
		{What: "utilisation (nvmlDeviceGetUtilizationRates)", Status: evidence.Unsupported, Why: "Not Supported"},
		{What: "processes (nvmlDeviceGetComputeRunningProcesses_v3)", Status: evidence.Failed, Why: "Unknown Error"},
	}
	if d := cmp.Diff(want, gpu.Devices[0].Unread); d != "" {
		t.Errorf("unread (-want +got):\n%s", d)
	}
	if f := frames[0]; f.UtilPercent != nil || f.MemoryUtilPercent != nil || f.PowerW == nil {
		t.Errorf("frame %+v", f)
	}
	// The newer memory call refused; the older one stands in for it.
	if d := cmp.Diff(gib(76.5), frames[0].MemoryUsedBytes); d != "" {
		t.Error(d)
	}
}

func TestLostGPUDoesNotSpoilTheOthers(t *testing.T) {
	for name, plays := range map[string]string{
		"no handle":  "gpus=5;lost=3",
		"half way":   "gpus=5;fail=nvmlDeviceGetPowerUsage@3:15",
		"at the end": "gpus=5;fail=nvmlDeviceGetComputeRunningProcesses_v3@3:15",
	} {
		t.Run(name, func(t *testing.T) {
			nvmlstub.Use(t, nvmlstub.Build(t), plays)
			p := start(t)
			gpu, frames, run := p.Devices(t.Context(), nil)
			if run.Status != evidence.Partial || !strings.Contains(run.Detail, "lost GPU 3") || run.Hint == "" {
				t.Errorf("run is %+v", run)
			}
			if len(frames) != 5 || len(gpu.Devices) != 5 {
				t.Fatalf("%d frames", len(frames))
			}
			if d := cmp.Diff(evidence.GPUFrame{Index: 3, Lost: true}, frames[3]); d != "" {
				t.Errorf("lost GPU (-want +got):\n%s", d)
			}
			device := gpu.Devices[3]
			if len(device.Unread) != 1 || device.Unread[0].Why != "GPU is lost" || device.UUID != "" {
				t.Errorf("lost GPU is %+v", device)
			}
			for _, i := range []int{0, 1, 2, 4} {
				if frames[i].PowerW == nil || frames[i].Lost || gpu.Devices[i].UUID == "" {
					t.Errorf("GPU %d: %+v %+v", i, gpu.Devices[i], frames[i])
				}
			}
			if later := p.Look(t.Context()); !later[3].Lost || later[4].PowerW == nil {
				t.Errorf("later look: %+v", later)
			}
		})
	}
}

func TestManyProcesses(t *testing.T) {
	var pids []string
	var want []evidence.GPUProcess
	for pid := 1000; pid < 1100; pid++ {
		pids = append(pids, fmt.Sprint(pid))
		want = append(want, evidence.GPUProcess{PID: pid, InTree: pid == 1050})
	}
	nvmlstub.Use(t, nvmlstub.Build(t), "gpus=1;pid_memory=none;pids="+strings.Join(pids, ","))
	_, frames, run := start(t).Devices(t.Context(), []int{1050, 7})
	if run.Status != evidence.OK {
		t.Errorf("run is %+v", run)
	}
	if d := cmp.Diff(want, frames[0].Processes, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("processes (-want +got):\n%s", d)
	}
}

func TestNoGPUHere(t *testing.T) {
	nvmlstub.Use(t, nvmlstub.Build(t), "gpus=0")
	gpu, frames, run := start(t).Devices(t.Context(), nil)
	if run.Status != evidence.OK || run.Detail == "" || gpu == nil || len(frames) != 0 {
		t.Errorf("run is %+v, GPU %+v", run, gpu)
	}
}

func BenchmarkDevices(b *testing.B) {
	nvmlstub.Use(b, nvmlstub.Build(b), "pids=1,2")
	for b.Loop() {
		p := start(b)
		if _, frames, run := p.Devices(b.Context(), nil); len(frames) != 8 {
			b.Fatal(run)
		}
		p.Close()
	}
}

func BenchmarkLook(b *testing.B) {
	nvmlstub.Use(b, nvmlstub.Build(b), "pids=1,2")
	p := start(b)
	p.Devices(b.Context(), nil)
	for b.Loop() {
		if len(p.Look(b.Context())) != 8 {
			b.Fatal(p.Status())
		}
	}
}

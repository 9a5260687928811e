//go:build cgo

package gpu

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/whyhang/whyhang/probes/evidence"
)

// maxProcesses bounds the list of one GPU.
const maxProcesses = 1024

// device is one GPU while it is read.
type device struct {
	lib    *library
	index  int
	handle nvml.Device
	lost   bool
	unread []evidence.Unread
}

// look reads one GPU. A GPU that fell off the bus has nothing but that fact.
func (l *library) look(index int, static bool) seen {
	d := &device{lib: l, index: index}
	a := seen{Device: evidence.GPUDevice{Index: index}, Frame: evidence.GPUFrame{Index: index}}
	if d.hold() {
		if static {
			d.identity(&a.Device)
		}
		d.memory(&a.Device, &a.Frame)
		d.load(&a.Frame)
		d.processes(&a.Frame)
	}
	if d.lost {
		a = seen{Device: evidence.GPUDevice{Index: index}, Frame: evidence.GPUFrame{Index: index, Lost: true}}
	}
	a.Device.Unread = d.unread
	return a
}

// hold finds the handle. This, not nvmlInit, is where the driver wakes a GPU.
func (d *device) hold() bool {
	if h, ok := d.lib.gpus[d.index]; ok {
		d.handle = h
		return true
	}
	symbol := d.lib.first("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
	ok := d.read("GPU", symbol, func() (r nvml.Return) { d.handle, r = d.lib.nvml.DeviceGetHandleByIndex(d.index); return r })
	if ok {
		if d.lib.gpus == nil {
			d.lib.gpus = map[int]nvml.Device{}
		}
		d.lib.gpus[d.index] = d.handle
	}
	return ok
}

// try calls a function of the library, if it is there, after saying so.
func (d *device) try(symbol string, f func() nvml.Return) nvml.Return {
	if d.lost {
		return nvml.ERROR_GPU_IS_LOST
	}
	if !d.lib.has(symbol) {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	d.lib.stage(fmt.Sprintf("%s of GPU %d", symbol, d.index))
	r := f()
	if r == nvml.ERROR_GPU_IS_LOST {
		d.lost = true
		d.unread = nil
		d.note("GPU", symbol, r)
	}
	return r
}

// read is try, with what the library said kept where it gave nothing.
func (d *device) read(what, symbol string, f func() nvml.Return) bool {
	r := d.try(symbol, f)
	if r != nvml.SUCCESS && !d.lost {
		d.note(what, symbol, r)
	}
	return r == nvml.SUCCESS
}

func (d *device) note(what, symbol string, r nvml.Return) {
	u := evidence.Unread{What: what + " (" + symbol + ")", Status: evidence.Failed, Why: d.lib.words(r)}
	switch r {
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
		u.Status = evidence.Unsupported
	case nvml.ERROR_NO_PERMISSION:
		u.Status, u.Hint = evidence.Denied, fmt.Sprintf("sudo nvidia-smi -q -i %d", d.index)
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED:
		u.Hint = "sudo dmesg | grep -i xid"
	}
	d.unread = append(d.unread, u)
}

func (d *device) identity(to *evidence.GPUDevice) {
	var r nvml.Return
	d.read("name", "nvmlDeviceGetName", func() nvml.Return { to.Name, r = d.handle.GetName(); return r })
	d.read("UUID", "nvmlDeviceGetUUID", func() nvml.Return { to.UUID, r = d.handle.GetUUID(); return r })
	var pci nvml.PciInfo
	symbol := d.lib.first("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")
	if d.read("bus id", symbol, func() nvml.Return { pci, r = d.handle.GetPciInfo(); return r }) {
		to.BusID = text(pci.BusId[:])
		if to.BusID == "" || symbol != "nvmlDeviceGetPciInfo_v3" {
			to.BusID = text(pci.BusIdLegacy[:]) // all that the older structure has
		}
	}
	var milliwatts uint32
	if d.read("power limit", "nvmlDeviceGetEnforcedPowerLimit", func() nvml.Return {
		milliwatts, r = d.handle.GetEnforcedPowerLimit()
		return r
	}) {
		to.PowerLimitW = watts(milliwatts)
	}
	to.Name, to.UUID = strings.ToValidUTF8(to.Name, "?"), strings.ToValidUTF8(to.UUID, "?")
}

// memory prefers version 2 of the call, which tells what the driver keeps for
// itself from what was allocated.
func (d *device) memory(to *evidence.GPUDevice, frame *evidence.GPUFrame) {
	var r nvml.Return
	var v2 nvml.Memory_v2
	if d.try("nvmlDeviceGetMemoryInfo_v2", func() nvml.Return { v2, r = d.handle.GetMemoryInfo_v2(); return r }) == nvml.SUCCESS {
		to.MemoryTotalBytes, frame.MemoryUsedBytes, frame.MemoryReservedBytes = &v2.Total, &v2.Used, &v2.Reserved
		return
	}
	var v1 nvml.Memory
	if d.read("memory", "nvmlDeviceGetMemoryInfo", func() nvml.Return { v1, r = d.handle.GetMemoryInfo(); return r }) {
		to.MemoryTotalBytes, frame.MemoryUsedBytes = &v1.Total, &v1.Used
	}
}

func (d *device) load(to *evidence.GPUFrame) {
	var r nvml.Return
	var u nvml.Utilization
	if d.read("utilisation", "nvmlDeviceGetUtilizationRates", func() nvml.Return { u, r = d.handle.GetUtilizationRates(); return r }) {
		to.UtilPercent, to.MemoryUtilPercent = number(u.Gpu), number(u.Memory)
	}
	var n uint32
	if d.read("power", "nvmlDeviceGetPowerUsage", func() nvml.Return { n, r = d.handle.GetPowerUsage(); return r }) {
		to.PowerW = watts(n)
	}
	if d.read("SM clock", "nvmlDeviceGetClockInfo", func() nvml.Return { n, r = d.handle.GetClockInfo(nvml.CLOCK_SM); return r }) {
		to.SMClockMHz = number(n)
	}
	if d.read("memory clock", "nvmlDeviceGetClockInfo", func() nvml.Return { n, r = d.handle.GetClockInfo(nvml.CLOCK_MEM); return r }) {
		to.MemoryClockMHz = number(n)
	}
	d.clockReasons(to)
	var t nvml.Temperature
	if d.try("nvmlDeviceGetTemperatureV", func() nvml.Return { t, r = d.handle.GetTemperatureV().V1(); return r }) == nvml.SUCCESS {
		to.TemperatureC = number(t.Temperature)
		return
	}
	if d.read("temperature", "nvmlDeviceGetTemperature", func() nvml.Return {
		// Deprecated, but all that a library without nvmlDeviceGetTemperatureV has.
		n, r = d.handle.GetTemperature(nvml.TEMPERATURE_GPU)
		return r
	}) {
		to.TemperatureC = number(n)
	}
}

// clockReasons: the function got a new name with driver 535.
func (d *device) clockReasons(to *evidence.GPUFrame) {
	var why uint64
	var r nvml.Return
	const now, before = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
	if d.lib.has(now) {
		if d.read("clock reasons", now, func() nvml.Return { why, r = d.handle.GetCurrentClocksEventReasons(); return r }) {
			to.ClockReasons = &why
		}
		return
	}
	if d.read("clock reasons", before, func() nvml.Return { why, r = d.handle.GetCurrentClocksThrottleReasons(); return r }) {
		to.ClockReasons = &why
	}
}

// processes reads the compute processes. The binding asks again with a larger
// array for as long as the library says that there are more.
func (d *device) processes(to *evidence.GPUFrame) {
	var r nvml.Return
	var list []nvml.ProcessInfo
	symbol := d.lib.first("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")
	if !d.read("processes", symbol, func() nvml.Return { list, r = d.handle.GetComputeRunningProcesses(); return r }) {
		return
	}
	for _, p := range list[:min(len(list), maxProcesses)] {
		q := evidence.GPUProcess{PID: int(p.Pid)}
		if used := p.UsedGpuMemory; used != ^uint64(0) { // NVML_VALUE_NOT_AVAILABLE
			q.MemoryUsedBytes = &used
		}
		to.Processes = append(to.Processes, q)
	}
}

func number[T uint32 | int32](n T) *int { i := int(n); return &i }

func watts(milliwatts uint32) *float64 { w := float64(milliwatts) / 1000; return &w }

// text is a C string in an array of a fixed length.
func text(c []int8) string {
	var b strings.Builder
	for _, ch := range c {
		if ch == 0 {
			break
		}
		b.WriteByte(byte(ch))
	}
	return strings.ToValidUTF8(b.String(), "?")
}

//go:build cgo

package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

const (
	libraryName = "libnvidia-ml.so.1"
	// maxGPUs bounds what a library gone wild may count.
	maxGPUs = 256
)

// Child makes the handler of the child process.
func Child() probes.Handler {
	// The state and the wait channel of a process are those of its main
	// thread: calls have to be made there, so that the parent can see where
	// one hangs.
	runtime.LockOSThread()
	n := &library{nvml: nvml.New(), known: map[string]bool{}}
	return n.answer
}

// library is NVML as the child sees it.
type library struct {
	nvml  nvml.Interface
	known map[string]bool // whether a function exists
	open  *opened
	gpus  map[int]nvml.Device
	stage func(string)
}

func (l *library) answer(_ context.Context, q json.RawMessage, stage func(string)) (a any, err error) {
	// A panic in the binding (it trusts the counts it is given) is an answer.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the NVML binding failed: %v", p)
		}
	}()
	var ask question
	if err := json.Unmarshal(q, &ask); err != nil {
		return nil, err
	}
	l.stage = stage
	if ask.Open {
		if l.open == nil {
			o := l.start()
			l.open = &o
		}
		return l.open, nil
	}
	if l.open == nil || l.open.Status != evidence.OK {
		// Any call now could end the process.
		return nil, errors.New("NVML is not open")
	}
	return l.look(ask.GPU, ask.Static), nil
}

// start loads and initialises the library.
func (l *library) start() opened {
	// Loaded here first: the binding hides what the dynamic linker said, and
	// would call an entry point that is not there.
	l.stage("dlopen of " + libraryName)
	lib := dl.New(libraryName, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := lib.Open(); err != nil {
		return cannotLoad(err)
	}
	entry := ""
	for _, name := range []string{"nvmlInit_v2", "nvmlInit"} {
		if lib.Lookup(name) == nil {
			entry = name
			break
		}
	}
	if entry == "" {
		return opened{
			Status: evidence.Unsupported,
			Detail: libraryName + " is no NVIDIA library: it has no nvmlInit",
			Hint:   "ldconfig -p | grep nvidia-ml",
		}
	}
	l.stage(entry)
	if r := l.nvml.Init(); r != nvml.SUCCESS {
		return l.cannotStart(entry, r)
	}
	o := opened{Status: evidence.OK}
	if l.call("nvmlSystemGetDriverVersion", func() (r nvml.Return) { o.Driver, r = l.nvml.SystemGetDriverVersion(); return r }) != nvml.SUCCESS {
		o.Driver = ""
	}
	count := l.first("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")
	if r := l.call(count, func() (r nvml.Return) { o.Count, r = l.nvml.DeviceGetCount(); return r }); r != nvml.SUCCESS {
		o.Status, o.Detail = evidence.Failed, fmt.Sprintf("%s: %s", count, l.words(r))
		o.Hint = "nvidia-smi -L"
	}
	o.Count = min(max(o.Count, 0), maxGPUs)
	return o
}

// cannotLoad puts the dynamic linker's answer in words.
func cannotLoad(err error) opened {
	if strings.Contains(err.Error(), "No such file") {
		return opened{Status: evidence.Unsupported, LibraryMissing: true,
			Detail: "no NVIDIA driver: " + libraryName + " not found",
			Hint:   "ldconfig -p | grep nvidia-ml; ls /proc/driver/nvidia/version"}
	}
	return opened{Status: evidence.Unsupported,
		Detail: "no NVIDIA driver: " + libraryName + " cannot be loaded: " + err.Error(),
		Hint:   "ldconfig -p | grep nvidia-ml"}
}

// cannotStart says what a failed nvmlInit means (nvml.h, nvmlReturn_t).
func (l *library) cannotStart(entry string, r nvml.Return) opened {
	o := opened{Status: evidence.Failed, Detail: fmt.Sprintf("%s: %s", entry, l.words(r))}
	switch r {
	case nvml.ERROR_DRIVER_NOT_LOADED:
		o.Status = evidence.Unsupported
		o.Detail = fmt.Sprintf("no NVIDIA driver: %s is there, but %s answers %q", libraryName, entry, l.words(r))
		o.Hint = "lsmod | grep nvidia; sudo dmesg | grep -i nvrm"
	case nvml.ERROR_NO_PERMISSION:
		o.Status, o.Hint = evidence.Denied, "ls -l /dev/nvidia*; sudo nvidia-smi"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		o.Detail += "; the driver was replaced while the system ran"
		o.Hint = "cat /proc/driver/nvidia/version; ls -l /usr/lib/*/libnvidia-ml.so.*"
	default:
		o.Hint = "nvidia-smi; sudo dmesg | grep -i nvrm"
	}
	return o
}

// has says whether the library exports a function. To call one that it lacks
// ends the process.
func (l *library) has(symbol string) bool {
	known, ok := l.known[symbol]
	if !ok {
		known = l.nvml.Extensions().LookupSymbol(symbol) == nil
		l.known[symbol] = known
	}
	return known
}

// first is the first of the names that the library has, or else the last of
// them. The binding chooses between versions in the same way.
func (l *library) first(names ...string) string {
	for _, n := range names {
		if l.has(n) {
			return n
		}
	}
	return names[len(names)-1]
}

// call calls a function about no GPU, if the library has it.
func (l *library) call(symbol string, f func() nvml.Return) nvml.Return {
	if !l.has(symbol) {
		return nvml.ERROR_FUNCTION_NOT_FOUND
	}
	l.stage(symbol)
	return f()
}

// words are the library's own for a code.
func (l *library) words(r nvml.Return) string {
	if r == nvml.ERROR_FUNCTION_NOT_FOUND {
		return "not in this driver's library"
	}
	if !l.has("nvmlErrorString") {
		return fmt.Sprintf("error %d", int32(r))
	}
	return strings.ToValidUTF8(nvml.ErrorString(r), "?")
}

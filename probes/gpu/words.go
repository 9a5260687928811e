package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// driverHint shows whether the kernel module still answers and what it had to
// say about its GPUs.
const driverHint = "cat /proc/driver/nvidia/version; sudo dmesg | grep -i xid"

// refused is the run of a library that could not be opened.
func (p *Probe) refused(o opened) {
	p.ended = true
	p.run.Status, p.run.Detail, p.run.Hint = o.Status, o.Detail, o.Hint
	if !o.LibraryMissing {
		return
	}
	// In a container the kernel's half may be there without the library.
	if v := kernelModule(p.procDir); v != "" {
		p.run.Detail = fmt.Sprintf("libnvidia-ml.so.1 not found, although the NVIDIA kernel module %s is loaded", v)
	}
}

// fail is the run of a child that did not answer about GPU i of count; count
// is 0 while the library was being opened.
func (p *Probe) fail(ctx context.Context, err error, i, count int) {
	p.run.Hint = driverHint
	var stuck *probes.StuckError
	var crash *probes.CrashError
	switch {
	case errors.As(err, &stuck) && errors.Is(ctx.Err(), context.Canceled):
		p.ended = true
		p.run.Status, p.run.Detail, p.run.Hint = evidence.Timeout, "interrupted", ""
		return
	case errors.As(err, &stuck):
		p.ended = true
		p.stuck = &stuck.Child
		p.run.Status = evidence.Timeout
		p.run.Detail = p.noAnswer(stuck)
	case errors.As(err, &crash):
		p.ended = true
		p.run.Status = evidence.Failed
		p.run.Detail = crashed(crash)
	default:
		p.run.Status = evidence.Failed
		p.run.Detail = "the GPU child: " + err.Error()
	}
	if count > 0 {
		p.run.Detail += fmt.Sprintf("; %d of %d GPUs were read", i, count)
	}
}

// noAnswer is the sentence about a driver that does not answer.
func (p *Probe) noAnswer(e *probes.StuckError) string {
	what := e.Child.Stage
	if what == "" {
		what = "the child that asks it"
	}
	after := e.After.Round(100 * time.Millisecond)
	if after == 0 {
		after = e.After.Round(time.Millisecond)
	}
	where := fmt.Sprintf("child %d", e.Child.PID)
	if e.Child.State != "" {
		where += " in state " + e.Child.State
	}
	if e.Child.Wchan != "" {
		where += ", waiting in " + e.Child.Wchan
	}
	s := fmt.Sprintf("the NVIDIA driver does not answer: %s did not return within %s (%s)", what, after, where)
	if v := kernelModule(p.procDir); v != "" {
		s += fmt.Sprintf("; its kernel module %s still answers in /proc/driver/nvidia/version", v)
	}
	return s
}

func crashed(e *probes.CrashError) string {
	s := "the NVIDIA library ended the process that asked it"
	if e.Stage != "" {
		s += " in " + e.Stage
	}
	s += ": " + e.Status
	if e.Stderr != "" {
		s += ": " + e.Stderr
	}
	return s
}

// howItWent is the run of a look that came back for every GPU.
func howItWent(gpu *evidence.GPU, frames []evidence.GPUFrame) evidence.ProbeRun {
	if len(gpu.Devices) == 0 {
		return evidence.ProbeRun{Status: evidence.OK, Detail: "the NVIDIA driver lists no GPU here"}
	}
	var lost, silent []string
	for i, d := range gpu.Devices {
		switch {
		case frames[i].Lost:
			lost = append(lost, fmt.Sprint(d.Index))
		case len(d.Unread) > 0:
			silent = append(silent, fmt.Sprint(d.Index))
		}
	}
	run := evidence.ProbeRun{Status: evidence.OK}
	var says []string
	if len(lost) > 0 {
		says = append(says, "the driver has lost GPU "+strings.Join(lost, ", "))
		run.Hint = driverHint
	}
	if len(silent) > 0 {
		says = append(says, "the driver did not give everything about GPU "+strings.Join(silent, ", "))
	}
	if len(says) > 0 {
		run.Status, run.Detail = evidence.Partial, strings.Join(says, "; ")
	}
	return run
}

package rule

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// Unmet is a need that the snapshot does not satisfy, and what would.
type Unmet struct {
	Need    evidence.Need
	Missing string
	Hint    string
	// Status is the status of the probe that failed, "" if it was not run.
	Status evidence.Status
}

// Unmet gives the needs that c does not satisfy. A need is also unmet when
// only a part of the tree could be read: absence of evidence there must not
// become evidence of health.
func (c *Case) Unmet(needs []evidence.Need) []Unmet {
	var unmet []Unmet
	for _, n := range needs {
		if u := c.unmet(n); u != nil {
			u.Need = n
			unmet = append(unmet, *u)
		}
	}
	return unmet
}

func (c *Case) unmet(n evidence.Need) *Unmet {
	switch n {
	case evidence.NeedTree:
		if len(c.Processes) == 0 {
			return c.probeSays(evidence.ProbeProcess, "the process tree was not read")
		}
	case evidence.NeedThreadStates:
		if !c.threadsSeen() {
			return c.probeSays(evidence.ProbeThreads, "the threads were not read")
		}
	case evidence.NeedThreadSyscalls:
		return c.needSyscalls()
	case evidence.NeedLockWords:
		if len(c.Waits) == 0 {
			return c.probeSays(evidence.ProbeWaits, "lock words were not read")
		}
		if c.WaitGraph.Unread > 0 {
			u := c.probeSays(evidence.ProbeWaits, "")
			u.Missing = fmt.Sprintf("%d of the lock words could not be read", c.WaitGraph.Unread)
			return u
		}
		return c.needSyscalls()
	case evidence.NeedOpenFiles:
		for _, d := range c.Tree.Denied {
			if strings.HasSuffix(d.Unread.What, "/maps") || strings.HasSuffix(d.Unread.What, "/fd") {
				return &Unmet{Missing: fmt.Sprintf("%s: %s", d.Unread.What, d.Unread.Why), Hint: d.Unread.Hint, Status: evidence.Denied}
			}
		}
	case evidence.NeedMovement:
		if !c.Moves.Looked {
			return &Unmet{Missing: "only one look was taken", Hint: fmt.Sprintf("whyhang %d --window 10s", c.Target.PID)}
		}
	case evidence.NeedLog:
		if len(c.Logs) == 0 {
			return c.probeSays(evidence.ProbeLog, "no log was read")
		}
	case evidence.NeedSockets:
		if c.Sockets == nil {
			return c.probeSays(evidence.ProbeSockets, "sockets were not read")
		}
		if c.Door.NotKnown != "" {
			u := c.probeSays(evidence.ProbeSockets, c.Door.NotKnown)
			u.Missing = c.Door.NotKnown
			return u
		}
	case evidence.NeedGPU:
		if c.GPU == nil || len(c.GPU.Devices) == 0 {
			return c.probeSays(evidence.ProbeGPU, "GPUs were not read")
		}
	case evidence.NeedCheck:
		if c.Check == nil {
			return c.probeSays(evidence.ProbeCheck, "the server was not asked anything")
		}
	case evidence.NeedCaches:
		// A tree that would use no cache has none to look at, and no run.
		for _, p := range c.Probes {
			if p.Name == evidence.ProbeFiles && p.Status != evidence.OK {
				return c.probeSays(evidence.ProbeFiles, "caches were not read")
			}
		}
	case evidence.NeedLimits:
		if c.Kernel == nil {
			return c.probeSays(evidence.ProbeCgroup, "control groups, file systems and the kernel's log were not read")
		}
	case evidence.NeedBench:
		if c.Bench == nil {
			return c.probeSays(evidence.ProbeBench, "no benchmark was run")
		}
	case evidence.NeedClocks, evidence.NeedCounters:
		return c.needBeforeBenchmark(n)
	}
	return nil
}

// needBeforeBenchmark is what only those who are about to measure must know.
func (c *Case) needBeforeBenchmark(n evidence.Need) *Unmet {
	switch {
	case !c.Asked.Strict:
	case n == evidence.NeedCounters && len(c.Snapshot.Counters) == 0:
		return c.probeSays(evidence.ProbeCounters, "whether it works for others: its own counters were not read")
	case n == evidence.NeedClocks && c.Kernel != nil && len(c.Kernel.CPUClocks) == 0:
		for _, u := range c.Kernel.Unread {
			if strings.HasSuffix(u.What, "/cpufreq") {
				return &Unmet{Missing: u.What + ": " + u.Why, Hint: u.Hint, Status: u.Status}
			}
		}
	}
	return nil
}

// needSyscalls wants the system call of every thread of every living process.
func (c *Case) needSyscalls() *Unmet {
	if !c.threadsSeen() {
		return c.probeSays(evidence.ProbeThreads, "the threads were not read")
	}
	for _, d := range c.Tree.Denied {
		if strings.Contains(d.Unread.What, "syscall") || strings.HasSuffix(d.Unread.What, "/mem") {
			return &Unmet{Missing: fmt.Sprintf("%s: %s", d.Unread.What, d.Unread.Why), Hint: d.Unread.Hint, Status: evidence.Denied}
		}
	}
	return nil
}

func (c *Case) threadsSeen() bool {
	for i := range c.Frames {
		for j := range c.Frames[i].Processes {
			if len(c.Frames[i].Processes[j].Threads) > 0 {
				return true
			}
		}
	}
	return false
}

// probeSays takes the reason from the probe that should have known.
func (c *Case) probeSays(name evidence.ProbeName, otherwise string) *Unmet {
	for _, p := range c.Probes {
		if p.Name == name && p.Status != evidence.OK {
			u := &Unmet{Missing: p.Detail, Hint: p.Hint, Status: p.Status}
			if u.Missing == "" {
				u.Missing = otherwise
			}
			return u
		}
	}
	return &Unmet{Missing: otherwise}
}

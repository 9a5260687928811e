package rule

import (
	"fmt"
	"path"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
)

// Capital begins a sentence.
func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Thread names a thread for a sentence: `thread 4243 "worker"`.
func (c *Case) Thread(pid, tid int) string {
	if name := c.ThreadName(pid, tid); name != "" {
		return fmt.Sprintf("thread %d %q", tid, name)
	}
	return fmt.Sprintf("thread %d", tid)
}

// ThreadName is the thread's comm, "" if it was not seen.
func (c *Case) ThreadName(pid, tid int) string {
	if t := c.FindThread(pid, tid); t != nil {
		return t.Name
	}
	return ""
}

// FindThread is a thread in the last frame that looked at it, nil if none did.
func (c *Case) FindThread(pid, tid int) *evidence.ThreadFrame {
	for n := len(c.Frames) - 1; n >= 0; n-- {
		j := facts.ProcessAt(&c.Frames[n], pid)
		if j < 0 {
			continue
		}
		for k := range c.Frames[n].Processes[j].Threads {
			if c.Frames[n].Processes[j].Threads[k].TID == tid {
				return &c.Frames[n].Processes[j].Threads[k]
			}
		}
	}
	return nil
}

// Process names a process for a sentence: `process 12 "tee"`.
func (c *Case) Process(pid int) string {
	if i, ok := c.Tree.Index[pid]; ok && c.Processes[i].Name != "" {
		return fmt.Sprintf("process %d %q", pid, c.Processes[i].Name)
	}
	return fmt.Sprintf("process %d", pid)
}

// Place says where in its program a thread is, as precisely as is known:
// "server.py:12 in handle" or "in ncclCommInitRank (libnccl.so.2)"; "" if not
// known.
func (c *Case) Place(pid, tid int) string {
	if f := c.PythonFrame(pid, tid); f != nil {
		return fmt.Sprintf("%s:%d in %s", path.Base(f.File), f.Line, f.Function)
	}
	w := c.WaitOf(tid)
	if w == nil || w.Site == nil {
		return ""
	}
	if w.Site.Function == "" {
		return "" // see Address
	}
	return fmt.Sprintf("in %s (%s)", w.Site.Function, w.Site.Module)
}

// Address is the place of a thread in native code that has no name: "server+0x1234"
// for addr2line; "" if it has one, or is not known.
func (c *Case) Address(tid int) string {
	w := c.WaitOf(tid)
	if w == nil || w.Site == nil || w.Site.Function != "" {
		return ""
	}
	return fmt.Sprintf("%s+0x%x", w.Site.Module, w.Site.OffsetBytes)
}

// waitingModules are files of Python's own library in which threads wait for
// others: whoever called them is the place to look at.
var waitingModules = map[string]bool{"threading.py": true, "queue.py": true, "_base.py": true, "thread.py": true, "connection.py": true,
	"synchronize.py": true, "popen_fork.py": true, "process.py": true, "subprocess.py": true, "selectors.py": true, "contextlib.py": true}

// PythonFrame is the innermost Python frame of a thread in the last reading that
// is no part of Python's own waiting; the innermost of all if there is none.
func (c *Case) PythonFrame(pid, tid int) *evidence.PythonFrame {
	t := c.PythonThread(pid, tid)
	if t == nil || len(t.Frames) == 0 {
		return nil
	}
	for i := range t.Frames {
		if !waitingModules[path.Base(t.Frames[i].File)] {
			return &t.Frames[i]
		}
	}
	return &t.Frames[0]
}

// PythonThread is a thread as its interpreter knows it, nil if it is none.
func (c *Case) PythonThread(pid, tid int) *evidence.PythonThread {
	if len(c.Waits) == 0 {
		return nil
	}
	look := &c.Waits[len(c.Waits)-1]
	for i := range look.Python {
		if look.Python[i].PID != pid {
			continue
		}
		for j := range look.Python[i].Threads {
			if look.Python[i].Threads[j].TID == tid {
				return &look.Python[i].Threads[j]
			}
		}
	}
	return nil
}

// WaitOf is the wait of a thread in the last reading, nil if it has none.
func (c *Case) WaitOf(tid int) *evidence.Wait {
	if n, ok := c.WaitGraph.Waiters[tid]; ok {
		return &c.Waits[n.Look].Waits[n.Wait]
	}
	if len(c.Waits) == 0 {
		return nil
	}
	look := &c.Waits[len(c.Waits)-1]
	for i := range look.Waits {
		if look.Waits[i].TID == tid {
			return &look.Waits[i]
		}
	}
	return nil
}

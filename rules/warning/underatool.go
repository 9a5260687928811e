package warning

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// UnderATool warns of a server that a debugger, profiler or checker is attached
// to or runs.
var UnderATool = rule.Rule{
	ID:    "under-a-tool",
	Title: "A debugger, profiler or memory checker works on the server",
	Doc: `Looks for a tracer of a process of the tree, for a tool among the processes above
it (nsys, ncu, compute-sanitizer, strace, gdb, valgrind, perf and the like, which
start what they look at), and for what sanitizers and profilers load into a
process. Each slows the server down, some a hundredfold; often it was left from
the hunt for a hang.

What would make it wrong: a launcher that happens to bear a tool's name.

Sources: proc_pid_status(5) TracerPid; proc_pid_stat(5) ppid; the libraries'
names as GCC, LLVM, Valgrind and NVIDIA's tools ship them.`,
	Needs: []evidence.Need{evidence.NeedTree},
	Eval: func(c *rule.Case) []rule.Finding {
		var found []rule.Finding
		warn := func(says, detail string, cite rule.Cite) {
			found = append(found, rule.Finding{Strength: rule.Strong, Says: says, Cites: []rule.Cite{cite},
				Warning: &rule.Warning{Code: "under-a-tool", Says: says, Detail: detail, Effect: "slower, sometimes many times", Misleads: true}})
		}
		seen := map[string]bool{}
		for i := range c.Processes {
			p := &c.Processes[i]
			// One that its tracer holds is not slow but stopped: the rule paused says it.
			if p.TracerPID != 0 && !seen[p.TracerName] && !heldByTracer(c, p.PID) {
				seen[p.TracerName] = true
				warn(fmt.Sprintf("Process %d (%s) traces process %d (%s).", p.TracerPID, p.TracerName, p.PID, p.Name), "traced by "+p.TracerName,
					c.Cite("tracer", "processes", i, "tracer_pid"))
			}
			for k, lib := range p.Libraries {
				tool := toolOfLibrary(lib)
				if tool == "" || seen[tool] {
					continue
				}
				seen[tool] = true
				warn(fmt.Sprintf("%s is loaded into process %d (%s): %s.", rule.Capital(tool), p.PID, p.Name, lib), tool+" ("+lib+")",
					c.Cite("library of process "+fmt.Sprint(p.PID), "processes", i, "libraries", k))
			}
		}
		for i, a := range c.Target.Ancestors {
			if tools[a.Name] && !seen[a.Name] {
				seen[a.Name] = true
				warn(fmt.Sprintf("It was started by %s (process %d).", a.Name, a.PID), "started by "+a.Name, c.Cite("a process above it", "target", "ancestors", i, "name"))
			}
		}
		return found
	},
}

// heldByTracer says whether the last look shows a process in tracing stop.
func heldByTracer(c *rule.Case, pid int) bool {
	if len(c.Frames) == 0 {
		return false
	}
	last := &c.Frames[len(c.Frames)-1]
	i := facts.ProcessAt(last, pid)
	return i >= 0 && last.Processes[i].State == "t"
}

// tools are names of programs (cut to 15 characters, as the kernel keeps them)
// that work on the programs they start.
var tools = map[string]bool{
	"nsys": true, "nsys-launcher": true, "ncu": true, "nv-nsight-cu-cl": true, "nvprof": true, "compute-sanitiz": true, "cuda-gdb": true, "cuda-memcheck": true,
	"gdb": true, "lldb": true, "strace": true, "ltrace": true, "perf": true, "rr": true, "valgrind": true, "heaptrack": true, "vtune": true,
	"py-spy": true, "memray": true, "scalene": true, "rocprof": true, "rocprofv2": true, "rocprofv3": true, "rocgdb": true, "uftrace": true,
}

// toolOfLibrary is the tool that a library belongs to, "" if it is none's.
func toolOfLibrary(name string) string {
	for _, l := range []struct{ begins, tool string }{
		{"libasan.", "AddressSanitizer"}, {"libhwasan.", "AddressSanitizer"}, {"libtsan.", "ThreadSanitizer"},
		{"libubsan.", "UndefinedBehaviorSanitizer"}, {"liblsan.", "LeakSanitizer"}, {"vgpreload_", "Valgrind"},
		{"libToolsInjection", "the NVIDIA Nsight Systems profiler"}, {"libsanitizer-collection", "the NVIDIA Compute Sanitizer"},
		{"libTreeLauncher", "an NVIDIA profiler or checker"},
	} {
		if strings.HasPrefix(name, l.begins) {
			return l.tool
		}
	}
	return ""
}

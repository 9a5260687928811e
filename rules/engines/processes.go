package engines

import (
	"path"
	"slices"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// title is the process's title, or the first word of its command line. What has
// ended has only its name left, which setproctitle sets as well and of which the
// kernel keeps 15 bytes.
func title(p *evidence.Process) string {
	if len(p.Argv) == 0 {
		return p.Name
	}
	return strings.TrimSpace(p.Argv[0])
}

// isPart tells a part by its name, or by what is left of it in a process that
// has ended.
func isPart(p *evidence.Process, prefix, part, name string) bool {
	const kept = 15
	return part == name || len(p.Argv) == 0 && len(p.Name) == kept && part != "" && strings.HasPrefix(prefix+name, p.Name)
}

// program is the base name of the program in argv.
func program(p *evidence.Process) string { return path.Base(title(p)) }

// interpreted is what follows the interpreter and its own options: "-m" with a
// module, or a script. Nil if the process is no Python program.
func interpreted(p *evidence.Process) []string {
	if name := program(p); !strings.HasPrefix(name, "python") && !strings.HasPrefix(name, "pypy") {
		return nil
	}
	for i := 1; i < len(p.Argv); i++ {
		switch arg := p.Argv[i]; {
		case arg == "-X" || arg == "-W":
			i++
		case arg == "-m" || arg == "-c" || !strings.HasPrefix(arg, "-"):
			return p.Argv[i:]
		}
	}
	return nil
}

// isPython tells "python -m module …".
func isPython(p *evidence.Process, modules ...string) bool {
	args := interpreted(p)
	return len(args) > 1 && args[0] == "-m" && slices.Contains(modules, args[1])
}

// isScript tells "name subcommand …", run as a program of its own or by Python
// as a script in some bin directory.
func isScript(p *evidence.Process, name string, subcommands ...string) bool {
	args := interpreted(p)
	if args == nil && program(p) == name {
		args = p.Argv
	}
	return len(args) > 1 && args[0] != "-m" && args[0] != "-c" && path.Base(args[0]) == name && slices.Contains(subcommands, args[1])
}

// IsHelper tells processes that are in the tree of every engine and ranks of
// none: Python's resource tracker and fork server, and the compile workers of
// torch inductor. They say nothing about which engine it is.
func IsHelper(p *evidence.Process) bool {
	for _, arg := range p.Argv {
		if strings.Contains(arg, "multiprocessing.resource_tracker") || strings.Contains(arg, "multiprocessing.forkserver") ||
			strings.Contains(arg, "torch/_inductor/compile_worker") {
			return true
		}
	}
	return false
}

// IsUntitled tells a child of Python's multiprocessing that has not said by its
// title what it is: engines set titles late or, without setproctitle, never. It
// may be any part.
func IsUntitled(p *evidence.Process) bool {
	for _, arg := range p.Argv {
		if strings.Contains(arg, "multiprocessing.spawn") || strings.Contains(arg, "--multiprocessing-fork") {
			return true
		}
	}
	return false
}

package facts

import "github.com/whyhang/whyhang/probes/evidence"

// onlyLooks are commands that look at something, or let time pass. Scripts and
// exporters start them again and again for as long as a server hangs.
var onlyLooks = map[string]bool{"sleep": true, "curl": true, "wget": true, "nc": true, "ps": true, "pgrep": true, "top": true, "free": true, "date": true,
	"cat": true, "tail": true, "head": true, "grep": true, "ls": true, "df": true, "ss": true, "netstat": true, "lsof": true, "fuser": true,
	"nvidia-smi": true, "rocm-smi": true, "amd-smi": true, "gpustat": true, "py-spy": true, "gdb": true}

// besideServer are processes of the tree that are no part of the server, by PID:
// the script that started it, and what that script runs beside it to see whether
// it answers yet. They move whether or not the server does.
//
// Only what certainly is none counts: no process below the server's main one,
// none that plays a part or has weight files in its hands, none that runs the
// same program as the main one (ranks under a launcher do) and no compiler.
// Where the programs cannot be read, nobody is beside.
func besideServer(s *evidence.Snapshot) map[int]bool {
	e := EngineOf(s.Processes)
	if e.Known == nil {
		return nil
	}
	at := map[int]int{}
	for i := range s.Processes {
		at[s.Processes[i].PID] = i
	}
	main, ok := at[e.MainPID]
	if !ok || s.Processes[main].Exe == "" {
		return nil
	}
	below := func(i int) bool {
		for range s.Processes {
			if i == main {
				return true
			}
			next, ok := at[s.Processes[i].PPID]
			if !ok {
				return false
			}
			i = next
		}
		return false
	}
	beside := map[int]bool{}
	for i := range s.Processes {
		p := &s.Processes[i]
		if _, plays := e.Roles[p.PID]; plays || len(p.Files) > 0 || p.Exe == s.Processes[main].Exe || isCompiler(p.Name) || below(i) {
			continue
		}
		beside[p.PID] = true
	}
	return beside
}

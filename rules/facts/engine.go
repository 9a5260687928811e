package facts

import (
	"strconv"
	"strings"
	"time"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
)

// Engine is which inference engine the tree runs, as far as it shows.
type Engine struct {
	// Known is nil for a process that shows no sign of an engine.
	Known *engines.Engine
	// Because says what gave it away; At is where it stands in the snapshot.
	Because string
	At      []any
	// MainPID is the process whose command line is the server's.
	MainPID int
	// Started is when that process was started; zero if not known.
	Started time.Time
	Command engines.CommandLine
	// Roles are the parts the processes play, by PID.
	Roles map[int]engines.Role
	// Untitled are processes that may be a part of the engine and do not show
	// which, by PID: see untitled.go.
	Untitled map[int]bool
	// Model is the path or name on the command line, Served the ID the API
	// knows it by; both "" if not given.
	Model  string
	Served string
	// Host and Port are where the API should be; Port 0: not known. PortTold:
	// the command line says so, it is not just the engine's default, which a
	// configuration file may have changed.
	Host string
	// Socket is the path of the unix socket where the API should be instead, "" if
	// there is none.
	Socket   string
	Port     int
	PortTold bool
}

// EngineOf is the engine of these processes, as far as they show it themselves.
func EngineOf(procs []evidence.Process) Engine { return engineOf(&evidence.Snapshot{Processes: procs}) }

// engineOf asks every engine about every process; the first process (they are
// root first) that an engine recognises decides. If no process shows it, the
// log may.
func engineOf(s *evidence.Snapshot) Engine {
	e := Engine{Roles: map[int]engines.Role{}}
	for i := range s.Processes {
		p := &s.Processes[i]
		known, role := recognise(p)
		if known == nil || (e.Known != nil && known != e.Known) {
			continue
		}
		e.Roles[p.PID] = role
		if e.Known == nil {
			e.Known = known
			e.MainPID = p.PID
			e.Because = "process " + strconv.Itoa(p.PID) + " is " + known.Name + "'s " + role.Name
			e.At = []any{"processes", i}
		}
	}
	if e.Known == nil {
		engineFromLog(s, &e)
	}
	if e.Known != nil {
		e.readCommand(s)
		e.untitled(s)
	}
	return e
}

// recognise is the engine that claims a process.
func recognise(p *evidence.Process) (*engines.Engine, engines.Role) {
	for _, known := range engines.All() {
		if known.Role == nil {
			continue
		}
		if role, ok := known.Role(p); ok {
			return known, role
		}
	}
	return nil, engines.Role{}
}

// engineFromLog takes the engine most of the known lines belong to.
func engineFromLog(s *evidence.Snapshot, e *Engine) {
	count := map[string]int{}
	best, bestAt := "", []any(nil)
	for l := range s.Logs {
		for m := range s.Logs[l].Marks {
			mark := &s.Logs[l].Marks[m]
			known := engines.ByID(mark.Engine)
			if known == nil || known.Role == nil {
				continue
			}
			count[mark.Engine]++
			if count[mark.Engine] > count[best] {
				best, bestAt = mark.Engine, []any{"logs", l, "marks", m}
			}
		}
	}
	// One line may be anybody's (uvicorn's above all); two are a habit.
	if count[best] < 2 || len(s.Processes) == 0 {
		return
	}
	e.Known = engines.ByID(best)
	e.MainPID = s.Processes[0].PID
	e.Because = "its log holds " + e.Known.Name + "'s lines"
	e.At = bestAt
}

// readCommand takes model, host and port from the main process's command line
// and environment.
func (e *Engine) readCommand(s *evidence.Snapshot) {
	var main *evidence.Process
	for i := range s.Processes {
		if s.Processes[i].PID == e.MainPID {
			main = &s.Processes[i]
		}
	}
	if main == nil {
		return
	}
	f := e.Known.Flags
	e.Started = main.Started
	e.Command = engines.CommandLine{Argv: main.Argv}
	value := func(names []string) string {
		if v, ok := e.Command.Value(names...); ok {
			return v
		}
		if len(names) > 0 {
			return main.Env[f.Env[names[0]]]
		}
		return ""
	}
	e.Model = value(f.Model)
	if e.Model == "" && len(f.ModelIsPositional) > 0 {
		e.Model, _ = e.Command.After(f.ModelIsPositional...)
	}
	e.Served = value(f.ServedName)
	e.Host = value(f.Host)
	if strings.HasSuffix(e.Host, ".sock") {
		e.Socket, e.Host = e.Host, "" // llama.cpp takes a path for a host
	}
	if s := value(f.Socket); s != "" {
		e.Socket = s
	}
	if e.Host == "" {
		e.Host = f.DefaultHost
	}
	// A default port is a guess where no command line was seen at all.
	if p := value(f.Port); e.Socket != "" {
		e.Port = 0
	} else if p != "" {
		e.Port, _ = strconv.Atoi(p)
		e.PortTold = e.Port != 0
	} else if _, modelSeen := e.Command.Value(f.Model...); modelSeen || e.Model != "" {
		e.Port = f.DefaultPort
	}
	e.Model = strings.TrimSpace(e.Model)
}

// ID is the engine's ID, "" if it is not known.
func (e *Engine) ID() string {
	if e.Known == nil {
		return ""
	}
	return e.Known.ID
}

// RoleOf names the part a process plays, for people.
func (e *Engine) RoleOf(p *evidence.Process) string {
	r, ok := e.Roles[p.PID]
	if !ok {
		return p.Name
	}
	if r.Rank != "" {
		return r.Name + " " + r.Rank
	}
	return r.Name
}

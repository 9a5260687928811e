package diagnose

import (
	"context"
	"strings"

	"github.com/whyhang/whyhang/probes/caches"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/kernel"
	"github.com/whyhang/whyhang/rules/engines"
	"github.com/whyhang/whyhang/rules/facts"
)

// find resolves the number that was asked for to a living process and reads
// its tree; false if there is nothing that lives.
func (r *run) find(ctx context.Context) bool {
	r.tell("find the process tree")
	r.tree.Env = variables()
	r.s.Target = r.reader.Find(r.PID)
	if r.s.Target.State != evidence.TargetAlive {
		return false
	}
	procs, run := r.reader.Tree(ctx, r.s.Target.PID, r.tree)
	procs = r.climb(ctx, procs)
	r.s.Processes = procs
	r.note(run)
	if len(procs) == 0 {
		r.s.Target.State = evidence.TargetExited
		return false
	}
	r.s.Target.Ancestors = r.reader.Ancestors(r.s.Target.PID)
	r.findWeights(ctx)
	return true
}

// climb goes from a worker to its server: a worker alone listens nowhere and
// looks like a server that never came up.
func (r *run) climb(ctx context.Context, procs []evidence.Process) []evidence.Process {
	const deepest = 6
	for range deepest {
		// In a container, the server itself is often process 1.
		if len(procs) == 0 || procs[0].PPID < 1 {
			break
		}
		e := facts.EngineOf(procs[:1])
		if e.Known == nil {
			break
		}
		above, ok := r.reader.One(ctx, procs[0].PPID, r.tree)
		if !ok {
			break
		}
		parent := facts.EngineOf([]evidence.Process{above})
		if parent.Known != e.Known || isShell(&above) {
			// Who has a part of an engine as a child and is none of it: its server,
			// in some program of somebody's, or whoever takes in orphans.
			r.s.Target.ParentPID, r.s.Target.ParentName = above.PID, above.Name
			break
		}
		all, _ := r.reader.Tree(ctx, above.PID, r.tree)
		if len(all) == 0 {
			break
		}
		procs = all
	}
	if len(procs) > 0 && procs[0].PID != r.s.Target.PID {
		r.s.Target.AskedPID, r.s.Target.PID = r.s.Target.PID, procs[0].PID
	}
	return procs
}

// isShell: "bash -c 'vllm serve …'" names an engine and is none.
func isShell(p *evidence.Process) bool {
	switch p.Name {
	case "sh", "bash", "dash", "zsh", "fish", "tmux: server", "screen", "sshd", "sudo", "su", "nohup", "timeout":
		return true
	}
	return false
}

// variables are the names of the environment variables that any engine or rule
// asks for.
func variables() []string {
	seen := map[string]bool{}
	var names []string
	add := func(name string) {
		name, _, _ = strings.Cut(name, "=")
		if name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for _, name := range caches.Variables() {
		add(name)
	}
	for _, e := range engines.All() {
		for _, name := range e.Env {
			add(name)
		}
		for _, name := range e.Flags.Env {
			add(name)
		}
		for _, d := range e.Distortions {
			add(d.Env)
		}
	}
	for _, name := range kernel.Variables() {
		add(name)
	}
	return names
}

// findWeights looks for the model: where the command line says, else around a
// weight file that the tree holds.
func (r *run) findWeights(ctx context.Context) {
	files := r.reader.Files()
	e := facts.EngineOf(r.s.Processes)
	if e.Model != "" {
		if w, err := files.Weights(ctx, e.MainPID, e.Model, "the command line"); err == nil && len(w.Files) > 0 {
			r.s.Weights, r.weightsPID = w, e.MainPID
			return
		}
	}
	for i := range r.s.Processes {
		for _, f := range r.s.Processes[i].Files {
			if w, err := files.Weights(ctx, r.s.Processes[i].PID, f.Path, "held by process "+itoa(r.s.Processes[i].PID)); err == nil && len(w.Files) > 0 {
				r.s.Weights, r.weightsPID = w, r.s.Processes[i].PID
				return
			}
		}
	}
}

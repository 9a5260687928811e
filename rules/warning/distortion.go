package warning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/engines"
	"github.com/whyhang/whyhang/rules/rule"
)

// DistortingFlag warns of options and variables that make a benchmark mislead.
var DistortingFlag = rule.Rule{
	ID:    "distorting-flag",
	Title: "Options or variables that make benchmark numbers mislead",
	Doc: `Looks at the command line and the environment of the server for what slows it
down, fakes it, or logs too much: CUDA graphs switched off, eager mode, debug
logging, launch blocking, dummy weights. They are often left over from the hunt
for a hang. In the incident behind this tool a forgotten --disable-cuda-graph
gave 27 tok/s where a baseline said 82.5, and the engine got the blame.

It does not change the verdict; with --strict a ready server that has one ends
with exit code 10.

Sources: the engines' own option lists (rules/engines).`,
	Needs: []evidence.Need{evidence.NeedTree},
	Eval: func(c *rule.Case) []rule.Finding {
		var found []rule.Finding
		seen := map[string]bool{}
		for _, d := range distortions(c) {
			for i := range c.Processes {
				cite, detail := match(c, i, d)
				if detail == "" || seen[detail] {
					continue
				}
				seen[detail] = true
				found = append(found, rule.Finding{
					Strength: rule.Strong, Says: detail + ": " + d.Says, Cites: []rule.Cite{cite},
					Warning: &rule.Warning{Code: "distorting-flag", Says: d.Says, Detail: detail, Effect: d.Effect, Misleads: !d.StartOnly},
				})
			}
		}
		return found
	},
}

// distortions are those of the engine and those of everybody.
func distortions(c *rule.Case) []engines.Distortion {
	var all []engines.Distortion
	if c.Engine.Known != nil {
		all = append(all, c.Engine.Known.Distortions...)
	}
	if common := engines.ByID("common"); common != nil {
		all = append(all, common.Distortions...)
	}
	return all
}

// match tells whether a process has the flag or variable; detail is how it
// stands there. Flags count on the main process only: workers repeat them.
func match(c *rule.Case, i int, d engines.Distortion) (rule.Cite, string) {
	p := &c.Processes[i]
	if d.Env != "" {
		name, want, valued := strings.Cut(d.Env, "=")
		if !setFromOutside(c, p) {
			return rule.Cite{}, ""
		}
		got, ok := p.Env[name]
		if !ok || got == "" || valued && !oneOf(want, got) {
			return rule.Cite{}, ""
		}
		return c.Cite("environment of process "+fmt.Sprint(p.PID), "processes", i, "env", name), name + "=" + got
	}
	if p.PID != c.Engine.MainPID {
		return rule.Cite{}, ""
	}
	name, want, valued := strings.Cut(d.Flag, " ")
	got, ok := c.Engine.Command.Value(name)
	if !ok || valued && !oneOf(want, got) && !beyond(want, got, c.Host.CPUs) || d.Like != nil && !d.Like.MatchString(got) {
		return rule.Cite{}, ""
	}
	at := 0
	for k := range p.Argv {
		if _, is := (engines.CommandLine{Argv: p.Argv[k : k+1]}).Value(name); is {
			at = k
		}
	}
	detail := name
	if valued || d.Like != nil {
		detail += " " + got
	}
	return c.Cite("command line of process "+fmt.Sprint(p.PID), "processes", i, "argv", at), detail
}

// setFromOutside: what stands in the environment of this process came from
// whoever started the server. Engines set variables for the parts they start
// (SGLang sets NCCL_NVLS_ENABLE for every scheduler): those mislead nobody.
func setFromOutside(c *rule.Case, p *evidence.Process) bool {
	if p.PID == c.Engine.MainPID || c.Engine.MainPID == 0 {
		return true
	}
	for i := range c.Processes {
		if c.Processes[i].PID == c.Engine.MainPID {
			return len(c.Processes[i].Env) == 0 && slices.ContainsFunc(c.Processes[i].Unread, func(u evidence.Unread) bool {
				return strings.Contains(u.What, "environ")
			})
		}
	}
	return true
}

// beyond tells whether got is a number below that in "<8", or above the number of
// processors for ">cpus".
func beyond(want, got string, cpus int) bool {
	n, err := strconv.Atoi(got)
	if err != nil {
		return false
	}
	if limit, ok := strings.CutPrefix(want, "<"); ok {
		below, err := strconv.Atoi(limit)
		return err == nil && n < below
	}
	return want == ">cpus" && cpus > 0 && n > cpus
}

// oneOf tells whether got is one of the alternatives in want (separated by |),
// in any case.
func oneOf(want, got string) bool {
	for _, w := range strings.Split(want, "|") {
		if strings.EqualFold(w, got) {
			return true
		}
	}
	return false
}

package broken

import (
	"fmt"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// DiskFull is a server that needs to write and has no room left.
var DiskFull = rule.Rule{
	ID:      "disk-full",
	Verdict: rule.Broken,
	Title:   "A file system that the server writes to is full, and the server needs it",
	Doc: `Looks for a file system without room for the server's user (no bytes, or no
inodes) among those of its log, its caches (HOME and the variables that name
caches), its working directory, /tmp and /dev/shm; and for a sign that the server
needs it: a line "No space left on device" in its log since the launch, or write
calls that all fail while its log lies on the full one. A log on a full disk
cannot say that the disk is full, so its silence says nothing.

Both together are strong while the server is not up and nothing moves. A server
that moves, listens or said it is ready is only likely to be broken by it: a
right answer and visible progress outrank it. A full disk without a sign is a
warning.

What would make it wrong: a line about another file system (too many inotify
watches give the same error) while an unimportant one is full; write calls that
fail for another reason.

Sources: write(2) ENOSPC; statfs(2) f_bavail, f_ffree; proc_pid_io(5) syscw, wchar.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedLimits},
	Suppresses: []rule.ID{"fatal-error", "no-movement"},
	Eval:       evalDiskFull,
	Against: func(c *rule.Case) *rule.Because {
		if len(c.Kernel.FileSystems) == 0 {
			return nil
		}
		if full := facts.FullOnes(c.Snapshot); len(full) > 0 {
			return &rule.Because{Says: fmt.Sprintf("%s is full, and nothing shows that the server needs it", c.Kernel.FileSystems[full[0].Index].Mount),
				Cites: []rule.Cite{c.Cite("what is left", "kernel", "file_systems", full[0].Index, full[0].Field)}}
		}
		return &rule.Because{Says: fmt.Sprintf("the %d file systems it writes to have room", len(c.Kernel.FileSystems)),
			Cites: []rule.Cite{c.Cite("room on "+c.Kernel.FileSystems[0].Mount, "kernel", "file_systems", 0, "avail_bytes")}}
	},
}

func evalDiskFull(c *rule.Case) []rule.Finding {
	full := facts.FullOnes(c.Snapshot)
	if len(full) == 0 {
		return nil
	}
	// One that holds the log explains most.
	which := full[0]
	for _, f := range full {
		if f.Log {
			which = f
			break
		}
	}
	fs := &c.Kernel.FileSystems[which.Index]
	f := rule.Finding{Cause: rule.DiskFull, Strength: rule.Strong,
		Cites:   []rule.Cite{c.Cite(which.What+" left on "+fs.Mount, "kernel", "file_systems", which.Index, which.Field)},
		FlipsIf: []string{"room is made, and the server goes on"},
		Next: []rule.Step{
			{Do: "See what fills it", Risk: rule.RiskNone, Command: whatFills(which.What, fs.Mount)},
			{Do: "Make room, then restart the server if it does not go on by itself", Risk: rule.RiskHigh, Command: fmt.Sprintf("kill %d", c.Target.PID)},
		}}
	sign := ""
	if cite, line := noSpaceLine(c); line > 0 {
		sign = fmt.Sprintf("line %d of its log says that no space is left", line)
		f.Cites = append(f.Cites, cite)
	} else if j := facts.WritesInVain(c.Snapshot, &c.Moves); j >= 0 && which.Log {
		p := &c.Frames[c.Moves.Last].Processes[j]
		sign = fmt.Sprintf("its log lies there and every write call of process %d fails", p.PID)
		f.Cites = append(f.Cites, c.Cite("write calls, which wrote nothing", "frames", c.Moves.Last, "processes", j, "write_calls"))
	}
	if sign == "" {
		return nil
	}
	f.Says = fmt.Sprintf("A file system that the server writes to is full: %s (%s) has no %s left, and %s.", fs.Mount, uses(fs), which.What, sign)
	if c.Phases.Ready != nil || c.Door.Listens || facts.Furthest(&c.Moves) != nil {
		f.Strength = rule.Likely
	}
	return []rule.Finding{f}
}

// noSpaceLine is the last line of the log since the launch that says so; a
// server that said it was ready after it got over it.
func noSpaceLine(c *rule.Case) (rule.Cite, int64) {
	for l := range c.Logs {
		for m := range c.Logs[l].Marks {
			mark := &c.Logs[l].Marks[m]
			if !strings.HasSuffix(mark.Signature, ".no-space") {
				continue
			}
			hit, at := &mark.First, "first"
			if mark.Last != nil {
				hit, at = mark.Last, "last"
			}
			if r := c.Phases.Ready; r != nil && r.Hit.Line > hit.Line {
				continue
			}
			return c.Cite(fmt.Sprintf("line %d of the log", hit.Line), "logs", l, "marks", m, at, "text"), hit.Line
		}
	}
	return rule.Cite{}, 0
}

// uses says what of the server lies on a file system.
func uses(fs *evidence.FileSystem) string {
	var all []string
	for _, u := range fs.For {
		all = append(all, u.What+" "+u.Path)
		if u.What == u.Path {
			all[len(all)-1] = u.Path
		}
		if len(all) == 3 && len(fs.For) > 3 {
			return strings.Join(all, ", ") + ", …"
		}
	}
	return strings.Join(all, ", ")
}

func whatFills(what, mount string) string {
	mount = rule.Quoted(mount)
	if what == "inodes" {
		return "df -i " + mount
	}
	return "df -h " + mount + "; sudo du -xh " + mount + " | sort -h | tail -20"
}

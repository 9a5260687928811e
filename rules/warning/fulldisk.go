package warning

import (
	"fmt"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/broken"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// FullDisk warns of a file system without room that the server may come to need.
var FullDisk = rule.Rule{
	ID:    "full-disk",
	Title: "A file system of the server is full",
	Doc: `Looks at the same file systems as the rule "disk-full": those of the log, the
caches, the working directory, /tmp and /dev/shm. One that has no bytes or no
inodes left for the server's user will fail the next write: a line of the log is
lost, a compiled kernel not kept, a shared memory segment not made.

It is a warning and no verdict as long as nothing shows that the server needs it.

Sources: statfs(2) f_bavail, f_ffree.`,
	Needs: []evidence.Need{evidence.NeedLimits},
	Eval: func(c *rule.Case) []rule.Finding {
		if len(broken.DiskFull.Eval(c)) > 0 {
			return nil // said there
		}
		var found []rule.Finding
		for _, full := range facts.FullOnes(c.Snapshot) {
			fs := &c.Kernel.FileSystems[full.Index]
			says := fmt.Sprintf("%s has no %s left", fs.Mount, full.What)
			detail := fs.Mount
			if len(fs.For) > 0 {
				detail = fs.For[0].What + " " + fs.For[0].Path
				says += fmt.Sprintf("; it holds %s of the server", detail)
			}
			found = append(found, rule.Finding{Strength: rule.Strong, Says: says,
				Cites:   []rule.Cite{c.Cite(full.What+" left", "kernel", "file_systems", full.Index, full.Field)},
				Warning: &rule.Warning{Code: "full-disk", Says: says, Detail: detail, Effect: "what it writes there is lost"}})
		}
		return found
	},
}

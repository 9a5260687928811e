package rule

import (
	"fmt"
	"strings"
)

// OddRanks says which ranks are in an earlier phase than the others, as a
// sentence with a space before it; "" if the log shows no such difference.
func (c *Case) OddRanks() string {
	phase, behind, ahead := c.Phases.Laggards()
	switch {
	case phase == "":
		return ""
	case len(behind) == 1:
		return fmt.Sprintf(" Rank %s is still in the phase %s, which %s ended.", behind[0], phase, others(len(ahead), "has", "have"))
	}
	return fmt.Sprintf(" Ranks %s are still in the phase %s, which %s ended.", few(behind), phase, others(len(ahead), "has", "have"))
}

func others(n int, one, many string) string {
	if n == 1 {
		return "1 other " + one
	}
	return fmt.Sprintf("%d others %s", n, many)
}

// few names at most four.
func few(list []string) string {
	if len(list) > 4 {
		return strings.Join(list[:4], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// Part names a process with the part it plays: `scheduler TP1 (process 12)`.
func (c *Case) Part(pid int) string {
	i, ok := c.Tree.Index[pid]
	if !ok {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("%s (process %d)", c.Engine.RoleOf(&c.Processes[i]), pid)
}

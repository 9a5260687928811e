package stalled

import (
	"fmt"
	"path"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// DownloadStalled is a download from which nothing comes.
var DownloadStalled = rule.Rule{
	ID:      "download-stalled",
	Verdict: rule.Stalled,
	Title:   "A download is under way and no byte comes",
	Doc: `Looks for an unfinished file in the cache of a hub that a process of the tree
has open and that did not grow over the window, while nothing else in the tree
comes further; or for a log whose last phase is a download, in the same
standstill. A connection of that process that is established and has nothing in
its queues shows that the other side sends nothing, and makes it strong.

It is no deadlock: the other side may send again, and clients give up and try
again after a time-out of their own.

Lock files that lie in the hub's .locks directory are no reason for a wait: what
counts is the kernel's lock, which ends with its holder.

What would make it wrong: a client that checks or moves what it has fetched.

Sources: huggingface_hub file_download.py and utils/_fixes.py (WeakFileLock);
proc_net_tcp; HF_HUB_DOWNLOAD_TIMEOUT (10 s) in constants.py.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedCaches},
	Suppresses: []rule.ID{"no-movement"},
	Eval:       evalDownloadStalled,
}

func evalDownloadStalled(c *rule.Case) []rule.Finding {
	if c.Phases.Ready != nil || c.Phases.Stopping != nil || c.Moves.WindowMS < longEnoughMS {
		return nil
	}
	if c.Door.Listens && (c.Engine.Known == nil || !c.Engine.Known.ListensEarly) {
		return nil
	}
	if facts.Furthest(&c.Moves) != nil || facts.Works(&c.Moves) {
		return nil
	}
	i, k, p := facts.NewestPartial(c.Snapshot)
	byLog := c.Phases.Current == evidence.PhaseDownload
	if p == nil && !byLog {
		return nil
	}
	last := len(c.Frames) - 1
	f := rule.Finding{Cause: rule.DownloadStalled, Strength: rule.Likely, FlipsIf: []string{"a byte comes in a longer look"},
		Cites: []rule.Cite{c.Cite("length of the window in ms", "frames", last, "since_ms")}}
	what, pid := "the log was last in a download", 0
	if p != nil {
		pid = p.PID
		what = fmt.Sprintf("%s stays at %s", path.Base(p.Path), facts.Bytes(float64(p.SizeBytes)))
		f.Cites = append(f.Cites, c.Cite("size of the unfinished file", "frames", last, "caches", i, "partial", k, "size_bytes"),
			c.Cite("process that has it open", "frames", last, "caches", i, "partial", k, "pid"))
		f.Culprits = []rule.Culprit{{PID: pid, Name: c.Processes[c.Tree.Index[pid]].Name, Where: "downloads to " + p.Path}}
	}
	if byLog {
		l := c.Phases.LastLine
		f.Cites = append(f.Cites, c.Cite("line of the last phase in the log", l.Field("line")...))
	}
	f.Says = fmt.Sprintf("It downloads its model and nothing has come for %.0f s: %s.", c.Moves.WindowMS/1000, what)
	if n := silentConnection(c, pid); n >= 0 && p != nil {
		conn := &c.Sockets.Connections[n]
		f.Strength = rule.Strong
		f.Says += fmt.Sprintf(" Its connection to %s stands, and the other side sends nothing.", conn.Remote)
		f.Cites = append(f.Cites, c.Cite("received and not read, bytes, of the connection to "+conn.Remote, "sockets", "connections", n, "rx_queue_bytes"))
	}
	if idleLocks(c) {
		f.Says += " The lock files in the cache are held by nobody, which is harmless."
	}
	f.Next = []rule.Step{
		{Do: "Look longer: clients give up and try again", Risk: rule.RiskNone, Command: fmt.Sprintf("whyhang %d --window 60s", c.Target.PID)},
		{Do: "See whether the hub can be reached from here", Risk: rule.RiskNone, Command: "curl -sSI https://huggingface.co | head -1"},
		{Do: "A restart goes on where the download stopped; lock files need not be removed", Risk: rule.RiskLow},
	}
	return []rule.Finding{f}
}

// silentConnection is an outgoing connection of a process that is established
// and has nothing in its queues, -1 if there is none.
func silentConnection(c *rule.Case, pid int) int {
	if c.Sockets == nil {
		return -1
	}
	for i := range c.Sockets.Connections {
		conn := &c.Sockets.Connections[i]
		if conn.PID == pid && conn.State == "ESTABLISHED" && !conn.Inbound && conn.RxQueueBytes == 0 && conn.TxQueueBytes == 0 {
			return i
		}
	}
	return -1
}

func idleLocks(c *rule.Case) bool {
	for i := range c.Caches {
		if c.Caches[i].Kind != evidence.CacheDownload {
			continue
		}
		for k := range c.Caches[i].Locks {
			if l := &c.Caches[i].Locks[k]; l.Kind == evidence.LockKernel && len(l.Holders) == 0 {
				return true
			}
		}
	}
	return false
}

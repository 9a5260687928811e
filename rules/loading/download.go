package loading

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// Download is a server that fetches its model.
var Download = rule.Rule{
	ID:      "download",
	Verdict: rule.Loading,
	Title:   "The model is being downloaded",
	Doc: `Looks for an unfinished file in the cache of a hub (*.incomplete of
huggingface_hub, *-partial of Ollama, *.downloadInProgress of llama.cpp, the
temporary directory of ModelScope) that grows and that a process of the tree has
open, or grows while the tree writes as much; or for a log whose last phase is a
download while the tree writes. The growing file and the bytes written are two
signs.

How much is left is known only where a progress bar in the log says how large
the file is; otherwise the rate is all there is.

What would make it wrong: a server that is up and fetches another model.

Sources: huggingface_hub file_download.py; ollama server/download.go;
proc_pid_io(5) wchar.`,
	Needs:      []evidence.Need{evidence.NeedMovement, evidence.NeedCaches},
	Suppresses: []rule.ID{"no-movement", "phase-moves", "download-stalled", "waits-for-build"},
	Eval:       evalDownload,
	Against: func(c *rule.Case) *rule.Because {
		if i, k, p := facts.NewestPartial(c.Snapshot); p != nil {
			return &rule.Because{Says: fmt.Sprintf("the unfinished download %s does not grow", p.Path),
				Cites: []rule.Cite{c.Cite("its size", "frames", len(c.Frames)-1, "caches", i, "partial", k, "size_bytes")}}
		}
		return nil
	},
}

func evalDownload(c *rule.Case) []rule.Finding {
	if upAlready(c) {
		return nil
	}
	grows := c.Moves.Most(facts.Downloaded)
	wrote := c.Moves.Most(facts.BytesOut)
	byLog := c.Phases.Current == evidence.PhaseDownload
	if grows == nil && (!byLog || wrote == nil || wrote.PerS < 64<<10) {
		return nil
	}
	p := phase(c, evidence.PhaseDownload)
	f := rule.Finding{Cause: rule.Download, Strength: rule.Likely, Phase: p, FlipsIf: []string{"no byte comes over a whole window"}}
	p.Unit = "bytes"
	if grows != nil {
		p.Done = grows.Value
		for i := range c.Moves.Moves {
			if m := &c.Moves.Moves[i]; m.Kind == facts.Downloaded {
				p.Rate += m.PerS // several files at once
			}
		}
		f.Cites = append(f.Cites, citeMove(c, grows))
		file, _ := rule.Lookup(c.Snapshot, append(grows.At[:len(grows.At)-1:len(grows.At)-1], "path")).(string)
		f.Says = fmt.Sprintf("It downloads its model: %s has %s, %s/s come in", path.Base(file), facts.Bytes(grows.Value), facts.Bytes(p.Rate))
		if wrote != nil || byLog {
			f.Strength = rule.Strong
		}
	} else {
		p.Rate = wrote.PerS
		f.Says = fmt.Sprintf("It downloads its model, as its log says: it writes %s/s", facts.Bytes(p.Rate))
	}
	if wrote != nil {
		f.Cites = append(f.Cites, citeMove(c, wrote))
	}
	f.Says += left(c, p, grows != nil) + "."
	if byLog {
		f.Cites = append(f.Cites, citeLog(c)...)
	}
	f.Next = again(c, p)
	return []rule.Finding{f}
}

// left fills in how much is left, where a bar of the log tells how large the
// file is, or how much of all is there, and says it.
func left(c *rule.Case, p *facts.Phase, sized bool) string {
	size, ev := c.Phases.Value("total")
	if ev == nil || ev.Mark.Phase != evidence.PhaseDownload {
		return ""
	}
	total, ok := barBytes(size)
	switch {
	case ok:
		done := p.Done
		if !sized {
			done, _ = barBytes(ev.Hit.Values["done"])
		}
		if done > total || p.Rate <= 0 {
			return ""
		}
		percent, eta := 100*done/total, (total-done)/p.Rate
		low, high := eta*0.7, eta*1.6 // lines to hubs are shared
		p.Done, p.Total, p.Percent, p.ETA, p.ETALow, p.ETAHigh = done, total, &percent, &eta, &low, &high
		return fmt.Sprintf(", %.0f %% of %s, about %s left", percent, facts.Bytes(total), facts.Lasting(eta))
	case p.Percent != nil:
		return fmt.Sprintf(", %.0f %% of the files are there", *p.Percent)
	}
	return ""
}

// barBytes reads a size as tqdm writes it: "4.60G", powers of 1000. A bare
// number counts files.
func barBytes(s string) (float64, bool) {
	if s == "" {
		return 0, false
	}
	power, ok := map[byte]float64{'k': 1e3, 'M': 1e6, 'G': 1e9, 'T': 1e12}[s[len(s)-1]]
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s[:len(s)-1]), 64)
	return v * power, err == nil && v > 0 && v < 1e9 // no infinity
}

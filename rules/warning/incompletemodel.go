package warning

import (
	"fmt"
	"path"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// IncompleteModel warns of model files that are shorter than their headers say,
// or that are not there.
var IncompleteModel = rule.Rule{
	ID:    "incomplete-model",
	Title: "Files of the model are cut off or missing",
	Doc: `Compares the size of each safetensors and GGUF file with what its own header
says: where the data of the last tensor end. A shorter file is a download that
has not ended, or one that was cut off; a load of it fails, mostly at its very
end. Parts that the index (model.safetensors.index.json) names or that the numbers
in the file names promise (-00002-of-00005) and that are not there are named too.

It does not change the verdict: a server may wait for the download, or not need
the file.

Only a file that is too short counts. A file of full size may still be full of
holes, and formats without such a header say nothing.

Sources: the safetensors format (length, header, data_offsets), ggml docs/gguf.md.`,
	Needs: []evidence.Need{evidence.NeedTree},
	Eval:  evalIncompleteModel,
}

// maxNamed is how many missing parts a sentence names.
const maxNamed = 3

func evalIncompleteModel(c *rule.Case) []rule.Finding {
	w := c.Weights
	if w == nil {
		return nil
	}
	var found []rule.Finding
	short := 0
	for i := range w.Files {
		f := &w.Files[i]
		if f.Header == nil || f.Header.ExpectedBytes <= f.SizeBytes {
			continue
		}
		if short++; short > 1 {
			continue
		}
		found = append(found, warn(fmt.Sprintf("model file %s is incomplete: %s of %s; the load will fail, or waits for the download",
			f.Path, facts.Bytes(float64(f.SizeBytes)), facts.Bytes(float64(f.Header.ExpectedBytes))), f.Path,
			c.Cite("its size", "weights", "files", i, "size_bytes"), c.Cite("what its header needs", "weights", "files", i, "header", "expected_bytes")))
	}
	if short > 1 {
		found[0].Warning.Says += fmt.Sprintf(" (and so are %d more)", short-1)
		found[0].Says = found[0].Warning.Says
	}
	if n := w.MissingCount; n > 0 && len(w.Missing) > 0 {
		names := strings.Join(w.Missing[:min(len(w.Missing), maxNamed)], ", ")
		if n > maxNamed {
			names += ", …"
		}
		found = append(found, warn(fmt.Sprintf("%d of %d parts of the model are not in %s: %s", n, n+len(w.Files), directory(w), names), w.Missing[0],
			c.Cite("the first that is missing", "weights", "missing", 0)))
	}
	return found
}

func directory(w *evidence.Weights) string {
	if len(w.Files) > 0 {
		return path.Dir(w.Files[0].Path)
	}
	return w.Path
}

func warn(says, detail string, cites ...rule.Cite) rule.Finding {
	return rule.Finding{Strength: rule.Strong, Says: rule.Capital(says) + ".", Cites: cites,
		Warning: &rule.Warning{Code: "incomplete-model", Says: says, Detail: detail, Effect: "the load ends with an error"}}
}

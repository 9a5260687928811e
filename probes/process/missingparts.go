package process

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whyhang/whyhang/probes/evidence"
)

// This file runs in the child.

// modelIndex is what the index of a sharded model says.
type modelIndex struct {
	names map[string]bool
	bytes uint64
}

func (i *modelIndex) files() map[string]bool {
	if i == nil {
		return nil
	}
	return i.names
}

// missingParts are parts of a model that should be there.
type missingParts struct {
	Names      []string `json:"names"`
	Count      int      `json:"count"`
	IndexBytes uint64   `json:"index_bytes,omitempty"`
}

// Bounds on what an index or a file name may claim.
const (
	maxMissing      = 64
	maxParts        = 4096
	maxFileNameSize = 255
)

// missing are the parts that the index names, or else the numbers in the names
// of the files that are there. An index none of whose files is there is about
// other files.
func missing(found []evidence.WeightFile, index *modelIndex) *missingParts {
	have := map[string]bool{}
	for _, f := range found {
		have[path.Base(f.Path)] = true
	}
	wanted := partsByName(have)
	parts := &missingParts{}
	if index != nil && slices.ContainsFunc(found, func(f evidence.WeightFile) bool { return index.names[path.Base(f.Path)] }) {
		wanted, parts.IndexBytes = index.names, index.bytes
	}
	for name := range wanted {
		if base := path.Base(name); !have[base] && len(name) <= maxFileNameSize {
			parts.Names = append(parts.Names, strings.ToValidUTF8(base, "?"))
		}
	}
	parts.Count = len(parts.Names)
	if parts.Count == 0 && parts.IndexBytes == 0 {
		return nil
	}
	slices.Sort(parts.Names)
	parts.Names = parts.Names[:min(len(parts.Names), maxMissing)]
	return parts
}

// partsByName are all parts of files called name-00001-of-00005.ext, by one of
// them.
func partsByName(have map[string]bool) map[string]bool {
	wanted, sets := map[string]bool{}, map[string]bool{}
	for name := range have {
		m := shardName.FindStringSubmatch(name)
		if m == nil || sets[m[1]+"/"+m[2]] {
			continue
		}
		sets[m[1]+"/"+m[2]] = true
		count, ending, _ := strings.Cut(m[2], ".")
		n, err := strconv.Atoi(count)
		if err != nil || n > maxParts || len(wanted)+n > 2*maxParts {
			continue
		}
		first := 1
		if have[fmt.Sprintf("%s-%05d-of-%s", m[1], 0, m[2])] {
			first, n = 0, n-1 // some count from zero
		}
		for k := first; k <= n; k++ {
			wanted[fmt.Sprintf("%s-%05d-of-%s.%s", m[1], k, count, ending)] = true
		}
	}
	return wanted
}

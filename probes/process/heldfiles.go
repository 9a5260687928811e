package process

import (
	"slices"

	"github.com/whyhang/whyhang/probes/evidence"
)

// KeepFiles adds to a new description of a process how far the weight files had
// come that it held before: loaders take one after another, and what is not
// held any more has been read.
func KeepFiles(p *evidence.Process, before []evidence.OpenFile) {
	for _, f := range before {
		at := slices.IndexFunc(p.Files, func(have evidence.OpenFile) bool { return have.Path == f.Path })
		if at < 0 {
			p.Files = append(p.Files, f)
			continue
		}
		have := &p.Files[at]
		have.PosBytes, have.ResidentBytes = further(have.PosBytes, f.PosBytes), further(have.ResidentBytes, f.ResidentBytes)
	}
}

func further(a, b *uint64) *uint64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

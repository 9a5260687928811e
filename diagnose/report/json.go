package report

import (
	"encoding/json"
	"io"
)

// JSON writes the report as indented JSON. Lists without elements are [].
func JSON(w io.Writer, r *Report) error {
	full := *r
	fill(&full.Timeline)
	fill(&full.GPUs)
	fill(&full.Findings)
	fill(&full.RuledOut)
	fill(&full.NotEvaluated)
	fill(&full.FlipsIf)
	fill(&full.Warnings)
	fill(&full.Next)
	fill(&full.Probes)
	for i := range full.Findings {
		fill(&full.Findings[i].Culprits)
		fill(&full.Findings[i].Cites)
	}
	for i := range full.RuledOut {
		fill(&full.RuledOut[i].Cites)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(&full)
}

// fill makes a nil list an empty one.
func fill[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

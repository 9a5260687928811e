package counters

import (
	"bytes"
	"errors"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/whyhang/whyhang/probes/evidence"
)

// The errors quote nothing: what a server answers may hold anything.
var (
	errNotMetrics = errors.New("not the Prometheus text format")
	errNotSlots   = errors.New("not the slots of llama.cpp")
	errNotLoads   = errors.New("not the loads of SGLang")
)

// parseMetrics reads the Prometheus text format; false if it has no counter of an
// engine that is known.
func parseMetrics(body []byte) (evidence.CounterLook, bool, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	// A text that was cut off in the middle has all that stands before.
	if err != nil && len(families) == 0 {
		return evidence.CounterLook{}, false, errNotMetrics
	}
	for _, n := range known {
		look := evidence.CounterLook{Engine: n.engine}
		look.Running, look.Waiting = sum(families, n.running), sum(families, n.waiting)
		look.GeneratedTokens, look.PromptTokens = sum(families, n.generated), sum(families, n.prompt)
		look.Steps = sum(families, n.steps)
		look.CacheUsage = most(families, n.cache)
		if look.Running != nil || look.Waiting != nil || look.GeneratedTokens != nil {
			return look, true, nil
		}
	}
	return evidence.CounterLook{}, false, nil
}

// sum adds up a metric over its labels: engines, models, ranks. SGLang's ranks of
// one tensor-parallel group each count the same requests, so of those with a
// tp_rank only rank 0 counts. Values that are no count are left out.
func sum(families map[string]*dto.MetricFamily, names []string) *float64 {
	var total float64
	found := false
	eachValue(families, names, func(m *dto.Metric, v float64) {
		if rank, ok := label(m, "tp_rank"); ok && rank != "0" {
			return
		}
		total += v
		found = true
	})
	if !found {
		return nil
	}
	return &total
}

// most is the greatest value of a metric.
func most(families map[string]*dto.MetricFamily, names []string) *float64 {
	var top *float64
	eachValue(families, names, func(_ *dto.Metric, v float64) {
		if top == nil || v > *top {
			top = &v
		}
	})
	return top
}

// eachValue calls f with the values of the first of these metrics that is there.
func eachValue(families map[string]*dto.MetricFamily, names []string, f func(*dto.Metric, float64)) {
	for _, name := range names {
		family := families[name]
		if family == nil {
			continue
		}
		for _, m := range family.GetMetric() {
			var v float64
			switch {
			case m.Counter != nil:
				v = m.Counter.GetValue()
			case m.Gauge != nil:
				v = m.Gauge.GetValue()
			case m.Untyped != nil:
				v = m.Untyped.GetValue()
			case m.Histogram != nil:
				v = m.Histogram.GetSampleSum()
			case m.Summary != nil:
				v = m.Summary.GetSampleSum()
			}
			if plausible(v) {
				f(m, v)
			}
		}
		return
	}
}

// plausible: a count, and not so much that a sum of many would be none.
func plausible(v float64) bool { return v >= 0 && v < 1e18 }

func label(m *dto.Metric, name string) (string, bool) {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue(), true
		}
	}
	return "", false
}

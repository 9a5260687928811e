package counters

import (
	"encoding/json"

	"github.com/whyhang/whyhang/probes/evidence"
)

// parseLoads reads SGLang's GET /v1/loads (entrypoints/v1_loads.py): one object for
// each data-parallel rank. It counts no tokens; those in the KV cache grow by one
// with each that is generated, and are freed with their request.
func parseLoads(body []byte) (evidence.CounterLook, error) {
	var answer struct {
		Loads []struct {
			Running *float64 `json:"num_running_reqs"`
			Waiting *float64 `json:"num_waiting_reqs"`
			Used    *float64 `json:"num_used_tokens"`
			Share   *float64 `json:"token_usage"`
		} `json:"loads"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return evidence.CounterLook{}, errNotLoads
	}
	look := evidence.CounterLook{Engine: "sglang"}
	for _, l := range answer.Loads {
		look.Running, look.Waiting = add(look.Running, l.Running), add(look.Waiting, l.Waiting)
		if l.Used != nil && plausible(*l.Used) {
			look.GeneratedTokens, look.PerRequest = add(look.GeneratedTokens, l.Used), true
		}
		if l.Share != nil && plausible(*l.Share) && (look.CacheUsage == nil || *l.Share > *look.CacheUsage) {
			look.CacheUsage = l.Share
		}
	}
	if look.Running == nil {
		return look, errNotLoads
	}
	return look, nil
}

func add(sum, v *float64) *float64 {
	if v == nil || !plausible(*v) {
		return sum
	}
	total := *v
	if sum != nil {
		total += *sum
	}
	return &total
}

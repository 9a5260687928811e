package counters

import (
	"encoding/json"

	"github.com/whyhang/whyhang/probes/evidence"
)

// parseSlots reads llama.cpp's GET /slots: one object for each slot. How many
// tokens a slot has decoded stands in n_decoded, since 2025 within next_token,
// which was an object and is a list.
func parseSlots(body []byte) (evidence.CounterLook, error) {
	type decoded struct {
		N *float64 `json:"n_decoded"`
	}
	var slots []struct {
		Processing *bool           `json:"is_processing"`
		State      *int            `json:"state"` // before September 2024: 1 for a slot at work
		Decoded    *float64        `json:"n_decoded"`
		Next       json.RawMessage `json:"next_token"`
	}
	if err := json.Unmarshal(body, &slots); err != nil {
		return evidence.CounterLook{}, errNotSlots
	}
	look := evidence.CounterLook{Engine: "llamacpp"}
	var running, tokens float64
	states, counts := false, false
	for _, s := range slots {
		switch {
		case s.Processing != nil:
			states = true
			if *s.Processing {
				running++
			}
		case s.State != nil:
			states = true
			if *s.State != 0 {
				running++
			}
		}
		var one decoded
		var several []decoded
		switch {
		case s.Decoded != nil:
			several = []decoded{{s.Decoded}}
		case json.Unmarshal(s.Next, &several) == nil:
		case json.Unmarshal(s.Next, &one) == nil:
			several = []decoded{one}
		}
		for _, d := range several {
			if d.N != nil && plausible(*d.N) {
				tokens += *d.N
				counts = true
			}
		}
	}
	if !states {
		return look, errNotSlots
	}
	look.Running = &running
	if counts {
		// A sum over the requests under way, which falls when one begins anew.
		look.GeneratedTokens, look.Steps, look.PerRequest = &tokens, &tokens, true
	}
	return look, nil
}

package diagnose

import (
	"encoding/json"
	"errors"
	"io"
)

// maxBaseline limits a baseline file; vLLM's detailed results are a few MB.
const maxBaseline = 64 << 20

// LoadBaseline reads the single-stream decode rate in tok/s from an earlier
// whyhang report (JSON), or from a file of `vllm bench serve --save-result` or
// SGLang's bench_serving (its last line): there it is 1000 / mean_tpot_ms.
func LoadBaseline(path string) (float64, error) {
	f, err := openInput(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return decodeBaseline(io.LimitReader(f, maxBaseline))
}

func decodeBaseline(r io.Reader) (float64, error) {
	var rate float64
	d := json.NewDecoder(r)
	for {
		var result struct {
			Bench *struct {
				SingleStream struct {
					Decode struct {
						Mean float64 `json:"mean"`
					} `json:"decode_tok_per_s"`
				} `json:"single_stream"`
			} `json:"bench"`
			MeanTPOTMS float64 `json:"mean_tpot_ms"`
		}
		if err := d.Decode(&result); err != nil {
			if errors.Is(err, io.EOF) && rate > 0 {
				return rate, nil
			}
			return 0, errors.New("is neither a number nor a whyhang report or a benchmark result that holds a decode rate")
		}
		switch {
		case result.Bench != nil && result.Bench.SingleStream.Decode.Mean > 0:
			rate = result.Bench.SingleStream.Decode.Mean
		case result.MeanTPOTMS > 0:
			rate = 1000 / result.MeanTPOTMS
		}
	}
}

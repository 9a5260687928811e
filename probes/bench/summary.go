package bench

import "math"

// summarise fills in the numbers of the completed streams.
func (r *runner) summarise() {
	s := &r.bench.SingleStream
	s.MaxConcurrency, s.RequestRate = 1, "inf"
	s.Completed = len(r.done)
	if !r.begun.IsZero() && !r.ended.IsZero() {
		s.Duration = r.ended.Sub(r.begun).Seconds()
	}
	var ttft, tpot, e2el, server []float64
	for i := range r.done {
		e := &r.done[i]
		n := outputTokens(e)
		s.TotalInputTokens += e.PromptTokens
		s.TotalOutputTokens += n
		s.InputLens = append(s.InputLens, e.PromptTokens)
		s.OutputLens = append(s.OutputLens, n)
		s.TTFTs = append(s.TTFTs, e.TTFTMS/1000)
		s.Latencies = append(s.Latencies, e.E2ELMS/1000)
		s.FinishReasons = append(s.FinishReasons, e.FinishReason)
		s.ITLs = append(s.ITLs, inSeconds(e.GapsMS))
		if e.CachedTokens != nil {
			s.CachedTokens = append(s.CachedTokens, *e.CachedTokens)
		}
		s.TokenCountSource = weaker(s.TokenCountSource, e.TokenCountSource)
		ttft, e2el = append(ttft, e.TTFTMS), append(e2el, e.E2ELMS)
		if e.ServerTokS != nil {
			server = append(server, *e.ServerTokS)
		}
	}
	s.StartTimes = r.starts
	s.DecodeRates = r.rates
	for _, rate := range r.rates {
		tpot = append(tpot, 1000/rate)
	}
	if s.Duration > 0 {
		s.RequestThroughput = float64(s.Completed) / s.Duration
		s.OutputThroughput = float64(s.TotalOutputTokens) / s.Duration
		s.TotalTokenThroughput = float64(s.TotalInputTokens+s.TotalOutputTokens) / s.Duration
	}
	s.MeanTTFTMS, s.MedianTTFTMS, s.StdTTFTMS = spread(ttft)
	s.MeanTPOTMS, s.MedianTPOTMS, s.StdTPOTMS = spread(tpot)
	s.MeanE2ELMS, s.MedianE2ELMS, s.StdE2ELMS = spread(e2el)
	s.DecodeTokS = estimate(r.rates)
	if len(server) > 0 {
		mean, _, _ := spread(server)
		s.ServerTokS = &mean
	}
	r.interTokenLatency()
	r.warnings()
}

// inSeconds is a list of milliseconds in seconds, to a tenth of a millisecond.
func inSeconds(ms []float64) []float64 {
	s := make([]float64, 0, len(ms))
	for _, v := range ms {
		s = append(s, math.Round(v*10)/1e4)
	}
	return s
}

// interTokenLatency pools the gaps of all streams, if they are gaps between
// tokens in all of them. Percentiles of three streams mean nothing, those of
// hundreds of gaps do.
func (r *runner) interTokenLatency() {
	var gaps []float64
	for i := range r.done {
		if !oneTokenPerChunk(&r.done[i]) {
			return
		}
		gaps = append(gaps, r.done[i].GapsMS...)
	}
	if len(gaps) < 2 {
		return
	}
	s := &r.bench.SingleStream
	mean, median, std := spread(gaps)
	s.MeanITLMS, s.MedianITLMS, s.StdITLMS = &mean, &median, &std
	if len(gaps) >= minITLs {
		p99 := quantile(0.99, gaps)
		s.P99ITLMS = &p99
	}
}

// warnings says what makes the numbers less than they seem.
func (r *runner) warnings() {
	s := &r.bench.SingleStream
	for _, field := range r.without {
		r.warn("the server refused or ignored the request field %s", field)
	}
	if s.TokenCountSource == countChunks {
		r.warn("the server does not count its tokens: rates are chunks per second, about tokens per second")
	}
	if s.NumEarlyStopped > 0 {
		r.warn("%d of %d streams ended before %d tokens", s.NumEarlyStopped, s.Completed, streamTokens)
	}
	if missing := s.Completed - len(r.rates); missing > 0 {
		r.warn("%d streams were too short for a decode rate", missing)
	}
	if cached, prompt := r.cached(); prompt > 0 && 2*cached > prompt {
		r.warn("%d of %d prompt tokens came from the server's prefix cache: the time to the first token is too good", cached, prompt)
	}
	if e := s.DecodeTokS; e.N >= minStreams && scatters(e) {
		r.warn("the rates scatter: the mean is good to %.0f %% only", 100*(e.CIHigh-e.Mean)/e.Mean)
	}
	if s.MedianITLMS == nil && len(r.done) > 0 && s.TokenCountSource != countChunks {
		r.warn("chunks hold several tokens: times between tokens are not known")
	}
}

// cached is how many of all prompt tokens the server had seen before.
func (r *runner) cached() (tokens, of int) {
	for i := range r.done {
		e := &r.done[i]
		if e.CachedTokens != nil {
			tokens += *e.CachedTokens
			of += e.PromptTokens
		}
	}
	return tokens, of
}

package bench

import "github.com/whyhang/whyhang/probes/evidence"

// Where the number of tokens of a stream comes from, the best first.
const (
	countContinuous = "usage_continuous"
	countUsage      = "usage"
	countChunks     = "chunks"
)

// outputTokens is the number of tokens of an answer: the server's count, and
// without one the number of chunks with text.
func outputTokens(e *evidence.Exchange) int {
	if e.TokenCountSource == countChunks {
		return e.Chunks
	}
	return e.CompletionTokens
}

// decodeRate is the tokens per second after the first chunk: (N-1)/(t_last -
// t_first) for a server that sends one token in a chunk. Where a chunk holds
// several, those of the first chunk were there at t_first and are taken off.
// False if the answer is too short for a rate.
func decodeRate(e *evidence.Exchange) (perSecond float64, ok bool) {
	n := float64(outputTokens(e))
	after := n - 1
	switch {
	case e.TokenCountSource == countContinuous && e.LastTokens > e.FirstTokens:
		after = float64(e.LastTokens - e.FirstTokens)
	case e.Chunks > 0 && !oneTokenPerChunk(e):
		after = n - n/float64(e.Chunks)
	}
	span := (e.LastMS - e.TTFTMS) / 1000
	if n < minRateTokens || e.Chunks < 2 || after <= 0 || span <= 0 {
		return 0, false
	}
	return after / span, true
}

// oneTokenPerChunk says whether the gaps between chunks are gaps between
// tokens. A few tokens without text (half a character, a stop token) are no
// chunk of their own.
func oneTokenPerChunk(e *evidence.Exchange) bool {
	if e.TokenCountSource == countChunks {
		return false // not known
	}
	silent := e.CompletionTokens - e.Chunks
	return silent >= 0 && silent <= max(1, e.CompletionTokens/50)
}

// weaker is the weaker of two sources of token counts.
func weaker(a, b string) string {
	for _, s := range []string{countChunks, countUsage, countContinuous} {
		if a == s || b == s {
			return s
		}
	}
	return ""
}

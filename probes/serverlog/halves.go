package serverlog

import (
	"bytes"

	"github.com/whyhang/whyhang/probes/serverlog/literal"
)

// halved is how long a text is, in bytes, for two to search it.
const halved = 256 << 10

// halves searches the two halves of a text at the same time. Searching is most
// of the work of reading a log, and a log is read while someone waits.
type halves struct {
	first, second *literal.Searcher
	hits          []literal.Hit // of the second
}

func newHalves(m *literal.Matcher) *halves {
	return &halves{first: m.Searcher(named), second: m.Searcher(named)}
}

// appendAll is Searcher.AppendAll.
func (h *halves) appendAll(dst []literal.Hit, text []byte) []literal.Hit {
	cut := bytes.IndexByte(text[len(text)/2:], '\n') + 1
	if len(text) < halved || cut == 0 {
		return h.first.AppendAll(dst, text)
	}
	cut += len(text) / 2
	done := make(chan struct{})
	go func() {
		h.hits = h.second.AppendAll(h.hits[:0], text[cut:])
		close(done)
	}()
	dst = h.first.AppendAll(dst, text[:cut])
	<-done
	for _, hit := range h.hits {
		hit.Start += cut
		dst = append(dst, hit)
	}
	return dst
}

package chat

import (
	"bytes"
	"fmt"
	"time"
)

// maxEvent limits one event and one line: logprobs and tool calls make events
// of 128 KiB, nothing honest makes one of 1 MiB.
const maxEvent = 1 << 20

// event is one server-sent event.
type event struct {
	// field is "data", or "error": older llama.cpp servers send a failure as
	// a field of that name, which a strict parser would drop.
	field string
	// name is the event: line, kept only if it is "error".
	name string
	// data is valid until the next call of feed.
	data []byte
	// at is when the bytes that completed the data were read.
	at time.Time
}

// parser cuts a byte stream into events, as
// https://html.spec.whatwg.org/multipage/server-sent-events.html says, with
// three allowances: "error:" is a field, [DONE] ends the stream without the
// blank line behind it, and so does the end of the stream. The bytes may be
// cut anywhere between two calls of feed.
type parser struct {
	line    []byte // a line without its end yet
	data    []byte
	name    string
	at      time.Time
	hasData bool
	afterCR bool // a \n that follows belongs to the \r before it
	begun   bool
	// comments counts comment lines, which servers send as keep-alives.
	comments int
}

var doneMark = []byte("[DONE]")

// feed takes the next bytes, read at that time, and calls emit for every event
// they complete until emit returns false. The error is an event that is too
// long.
func (p *parser) feed(b []byte, at time.Time, emit func(event) bool) (more bool, err error) {
	for len(b) > 0 {
		if p.afterCR {
			p.afterCR = false
			if b[0] == '\n' {
				b = b[1:]
				continue
			}
		}
		end := lineEnd(b)
		if end < 0 {
			p.line = append(p.line, b...)
			return true, p.tooLong(len(p.line))
		}
		line := b[:end]
		if len(p.line) > 0 {
			p.line = append(p.line, line...)
			line = p.line
		}
		p.afterCR = b[end] == '\r'
		b = b[end+1:]
		if err := p.tooLong(len(line) + len(p.data)); err != nil {
			return false, err
		}
		more := p.take(line, at, emit)
		p.line = p.line[:0]
		if !more {
			return false, nil
		}
	}
	return true, nil
}

// end says that no more bytes follow: what is complete but for its blank line
// counts as an event.
func (p *parser) end(at time.Time, emit func(event) bool) {
	if len(p.line) > 0 {
		if !p.take(p.line, at, emit) {
			return
		}
	}
	p.dispatch(emit)
}

// lineEnd is the index of the first \n or \r, -1 if there is none.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if cr := bytes.IndexByte(b[:end], '\r'); cr >= 0 {
		return cr
	}
	return end
}

func (p *parser) tooLong(n int) error {
	if n > maxEvent {
		return fmt.Errorf("an event is longer than %d bytes", maxEvent)
	}
	return nil
}

// take handles one line without its end.
func (p *parser) take(line []byte, at time.Time, emit func(event) bool) (more bool) {
	if !p.begun {
		p.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		return p.dispatch(emit)
	}
	if line[0] == ':' {
		p.comments++
		return true
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "data":
		if p.hasData {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.at = at
		first := !p.hasData
		p.hasData = true
		if first && bytes.Equal(bytes.TrimSpace(value), doneMark) {
			return p.dispatch(emit)
		}
	case "event":
		p.name = ""
		if string(value) == "error" {
			p.name = "error"
		}
	case "error":
		return emit(event{field: "error", data: value, at: at})
	}
	return true
}

// dispatch emits what has come since the last blank line.
func (p *parser) dispatch(emit func(event) bool) (more bool) {
	e := event{field: "data", name: p.name, data: p.data, at: p.at}
	had := p.hasData
	p.data, p.name, p.hasData = p.data[:0], "", false
	if !had {
		return true
	}
	return emit(e)
}

package chat

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// scanner reads fields out of JSON that is known to be valid, without
// reflection: a stream of several thousand chunks a second must not keep a
// processor busy that the server needs. A method that returns false has met
// something unusual: a field twice, a key or type that is not expected. The
// chunk is then left to encoding/json.
type scanner struct {
	b []byte
	i int
}

// scan reads a chunk from valid JSON. Of several choices only the first is
// read. Slices in c belong to data.
func scan(data []byte, c *chunk) bool {
	s := scanner{b: data}
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "error":
			c.Error = s.raw()
			return true
		case "object":
			v, ok := s.text()
			if string(v) == "error" {
				c.Object = "error"
			}
			return ok
		case "message":
			return s.str(&c.Message)
		case "choices":
			return s.choices(c)
		case "usage":
			return s.null() || s.usage(c)
		case "timings":
			return s.null() || s.timings(c)
		}
		s.raw()
		return true
	})
}

func (s *scanner) choices(c *chunk) bool {
	if s.null() {
		return true
	}
	if s.peek() != '[' {
		return false
	}
	all := s.raw()
	inner := scanner{b: all, i: 1}
	if inner.peek() == ']' {
		return true
	}
	c.Choices = append(c.Choices, choice{})
	return inner.choice(&c.Choices[0])
}

func (s *scanner) choice(c *choice) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "finish_reason":
			return s.str(&c.FinishReason)
		case "matched_stop":
			c.MatchedStop = s.raw()
			return true
		case "delta":
			return s.null() || s.delta(&c.Delta)
		case "message":
			return s.null() // no stream: not worth the speed
		}
		s.raw()
		return true
	})
}

func (s *scanner) delta(d *delta) bool {
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return s.str(&d.Content)
		case "reasoning_content":
			return s.str(&d.ReasoningContent)
		case "reasoning":
			return s.str(&d.Reasoning)
		case "tool_calls":
			v := s.raw()
			return string(v) == "null" || string(v) == "[]"
		}
		s.raw()
		return true
	})
}

func (s *scanner) usage(c *chunk) bool {
	c.Usage = &c.use
	return s.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return s.integer(&c.use.PromptTokens)
		case "completion_tokens":
			return s.integer(&c.use.CompletionTokens)
		case "prompt_tokens_details":
			return s.null() // comes once in an answer
		}
		s.raw()
		return true
	})
}

func (s *scanner) timings(c *chunk) bool {
	c.Timings = &timings{}
	return json.Unmarshal(s.raw(), c.Timings) == nil
}

// object calls field for every key, which has to consume the value.
func (s *scanner) object(field func(key []byte) bool) bool {
	if s.peek() != '{' {
		return false
	}
	s.i++
	var seen [32][]byte
	for n := 0; s.peek() == '"'; n++ {
		key, ok := s.text()
		if !ok || n == len(seen) || !plainKey(key) {
			return false
		}
		for _, k := range seen[:n] {
			if bytes.Equal(k, key) {
				return false // the last one would win
			}
		}
		seen[n] = key
		s.peek()
		s.i++ // the colon
		s.peek()
		if !field(key) {
			return false
		}
		if s.peek() == ',' {
			s.i++
		}
	}
	s.i++
	return true
}

// plainKey: encoding/json would take a key in any case of letters.
func plainKey(key []byte) bool {
	for _, c := range key {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// peek steps over space and gives the byte that follows, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// null consumes a null, if one follows.
func (s *scanner) null() bool {
	if s.peek() != 'n' {
		return false
	}
	s.i += len("null")
	return true
}

// text consumes a string, or null as the empty one, and gives its bytes; false
// for another type and for a string with escapes.
func (s *scanner) text() ([]byte, bool) {
	if s.null() {
		return nil, true
	}
	if s.peek() != '"' {
		return nil, false
	}
	v := s.raw()
	v = v[1 : len(v)-1]
	return v, bytes.IndexByte(v, '\\') < 0
}

// str reads a string into v; null leaves v as it is.
func (s *scanner) str(v *string) bool {
	from := s.i
	b, ok := s.text()
	if ok && utf8.Valid(b) {
		*v = string(b)
		return true
	}
	s.i = from
	return s.peek() == '"' && json.Unmarshal(s.raw(), v) == nil
}

func (s *scanner) integer(v *int) bool {
	if s.null() {
		return true
	}
	n, err := strconv.Atoi(string(s.raw()))
	*v = n
	return err == nil
}

// raw consumes the next value, whatever it is.
func (s *scanner) raw() []byte {
	s.peek()
	from, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			s.quoted()
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth == 0 {
				return s.b[from:s.i] // the end of what holds a number or word
			}
			depth--
			s.i++
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return s.b[from:s.i]
			}
			s.i++
			continue
		default:
			s.i++
			continue
		}
		if depth == 0 {
			return s.b[from:s.i]
		}
	}
	return s.b[from:]
}

// quoted steps over a string.
func (s *scanner) quoted() {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return
		}
	}
}

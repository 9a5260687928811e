package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var chunkSeeds = []string{
	role, four, finish, use, fmt.Sprintf(vllmChunk, 120, 10),
	`{"error":{"message":"x"}}`, `{"error":null}`, `{"object":"error","message":"no"}`, `[]`, `null`, `7`, `{}`, ` { } `,
	`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"x"}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":null}]}}]}`,
	`{"choices":[{"delta":{"content":"a\nb\u00e9\ud83d\ude00 \"q\""},"finish_reason":null}]}`, `{"choices":[{"delta":{"content":"` + "\xff" + `"}}]}`,
	`{"choices":[{"delta":{"content":["a"]}}]}`, `{"choices":{"delta":1}}`, `{"choices":[7,{}]}`, `{"choices":[{"delta":{}},{"delta":{"content":"second"}}]}`,
	`{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}`, `{"Choices":[{"Delta":{"Content":"4"}}]}`,
	`{"choices":[],"choices":[{"delta":{"content":"twice"}}]}`, `{"usage":{"completion_tokens":-1}}`, `{"usage":{"completion_tokens":1e3}}`,
	`{"usage":{"completion_tokens":12,"prompt_tokens":null,"prompt_tokens_details":{"cached_tokens":3}}}`, `{"usage":null,"choices":null}`,
	`{"choices":[{"finish_reason":"stop","matched_stop":"NaN happened"}]}`, `{"choices":[{"finish_reason":"stop","matched_stop":151645}]}`,
	`{"timings":{"predicted_per_second":69.5,"x":[1,{"y":"]"}]}}`, `{"timings":3}`, "{\n\t\"choices\" : [ { \"delta\" : { \"content\" : \"4\" } } ] }",
	`{"a":"}","b":"\\","c":{"d":[1,2,{"e":"]\""}]},"usage":{"completion_tokens":5}}`,
}

// slow is what encoding/json makes of a chunk.
func slow(data string) (*chunk, error) {
	c := &chunk{}
	err := json.Unmarshal([]byte(data), c)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		err = nil
	}
	return c, err
}

// seen is what the stream reads of a chunk.
func seen(c *chunk) any {
	type view struct {
		Failed  bool
		Text    string
		Choices bool
		Finish  string
		Stop    string
		Delta   delta
		Message *delta
		Usage   *usage
		Timings *timings
	}
	v := view{Usage: c.Usage, Timings: c.Timings, Choices: len(c.Choices) > 0}
	v.Text, v.Failed = c.failed()
	if v.Choices {
		first := c.Choices[0]
		v.Finish, v.Stop, v.Delta, v.Message = first.FinishReason, string(first.MatchedStop), first.Delta, first.Message
	}
	return v
}

// The fast way and encoding/json read the same.
func compareDecoders(t *testing.T, data string, used *chunk) {
	t.Helper()
	err := decode([]byte(data), used)
	want, wantErr := slow(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%s: %v, encoding/json says %v", data, err, wantErr)
	}
	if err != nil {
		return
	}
	if len(used.Error) > 0 || used.Object == "error" {
		if a, _ := used.failed(); a != first(want.failed()) {
			t.Errorf("%s: error %q", data, a)
		}
	}
	if diff := cmp.Diff(seen(want), seen(used), cmp.AllowUnexported(delta{})); diff != "" {
		t.Errorf("%s (-encoding/json +scan):\n%s", data, diff)
	}
}

func first(s string, _ bool) string { return s }

func TestDecode(t *testing.T) {
	used := &chunk{} // of one stream: nothing may stay from the chunk before
	fast := 0
	for _, data := range chunkSeeds {
		compareDecoders(t, data, used)
		compareDecoders(t, data, &chunk{})
		if json.Valid([]byte(data)) && scan([]byte(data), &chunk{}) {
			fast++
		}
	}
	if fast < len(chunkSeeds)/3 {
		t.Errorf("the fast way took %d of %d", fast, len(chunkSeeds))
	}
	if !scan([]byte(fmt.Sprintf(vllmChunk, 1, 2)), &chunk{}) {
		t.Error("an ordinary chunk goes the slow way")
	}
	for _, bad := range []string{"", "{", "{oops", `{"choices":[{"delta":{"content":"x}]}`, "4 5", strings.Repeat("[", 20000)} {
		if err := decode([]byte(bad), used); err == nil {
			t.Errorf("%.20q is taken for JSON", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range chunkSeeds {
		f.Add(s, four)
	}
	f.Fuzz(func(t *testing.T, before, data string) {
		used := &chunk{}
		_ = decode([]byte(before), used)
		compareDecoders(t, data, used)

		s := newTestStream()
		defer s.watch.stop()
		s.event(event{field: "data", data: []byte(data)})
		s.finish(s.failure)
		if s.e.CompletionTokens < 0 || s.content.Len() > maxKept {
			t.Errorf("%d tokens, %d bytes", s.e.CompletionTokens, s.content.Len())
		}
	})
}

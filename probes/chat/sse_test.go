package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// parse runs the parser over text cut at the given places and returns its
// events as "field/name:data".
func parse(text string, cuts ...int) (events []string, comments int, err error) {
	var p parser
	emit := func(e event) bool {
		events = append(events, e.field+"/"+e.name+":"+string(e.data))
		return strings.TrimSpace(string(e.data)) != "[DONE]"
	}
	slices.Sort(cuts)
	from := 0
	for _, to := range append(cuts, len(text)) {
		to = max(min(to, len(text)), from)
		more, err := p.feed([]byte(text[from:to]), time.Time{}, emit)
		if !more || err != nil {
			return events, p.comments, err
		}
		from = to
	}
	p.end(time.Time{}, emit)
	return events, p.comments, nil
}

var sseCases = []struct {
	name, text string
	want       []string
	comments   int
}{
	{"one event", "data: {}\n\n", []string{"data/:{}"}, 0},
	{"no space", "data:{}\n\n", []string{"data/:{}"}, 0},
	{"two spaces: one is taken", "data:  {}\n\n", []string{"data/: {}"}, 0},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"data/:a", "data/:b"}, 0},
	{"CR alone", "data: a\r\rdata: b\r\r", []string{"data/:a", "data/:b"}, 0},
	{"several data lines", "data: {\"a\":\ndata: 1}\n\n", []string{"data/:{\"a\":\n1}"}, 0},
	{"comments", ": keep-alive\n\n:\ndata: a\n: more\n\n", []string{"data/:a"}, 3},
	{"other fields", "event: message\nid: 7\nretry: 10\ndata: a\n\n", []string{"data/:a"}, 0},
	{"event named error", "event: error\ndata: {}\n\ndata: b\n\n", []string{"data/error:{}", "data/:b"}, 0},
	{"error field", "error: {\"code\":500}\n\n", []string{"error/:{\"code\":500}"}, 0},
	{"done", "data: a\n\ndata: [DONE]\n\ndata: never\n\n", []string{"data/:a", "data/:[DONE]"}, 0},
	{"done without space and blank line", "data:[DONE]\n", []string{"data/:[DONE]"}, 0},
	{"done without a line end", "data: [DONE]", []string{"data/:[DONE]"}, 0},
	{"[DONE] within an event is text", "data: a\ndata: [DONE]\n\n", []string{"data/:a\n[DONE]"}, 0},
	{"end without blank line", "data: a\n", []string{"data/:a"}, 0},
	{"empty data", "data:\n\ndata\n\n", []string{"data/:", "data/:"}, 0},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"data/:a"}, 0},
	{"multi-byte characters", "data: zwölf ⁴ 😀\n\n", []string{"data/:zwölf ⁴ 😀"}, 0},
	{"colon in the value", "data: a: b\n\n", []string{"data/:a: b"}, 0},
	{"nothing", "", nil, 0},
}

func TestParser(t *testing.T) {
	for _, tc := range sseCases {
		t.Run(tc.name, func(t *testing.T) {
			got, comments, err := parse(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if comments != tc.comments {
				t.Errorf("%d comments, want %d", comments, tc.comments)
			}
			// Reads may end anywhere: in a character, between \r and \n.
			for i := range len(tc.text) {
				for _, j := range []int{i, i + 1, i + 3} {
					cut, _, _ := parse(tc.text, i, j)
					if diff := cmp.Diff(tc.want, cut); diff != "" {
						t.Fatalf("cut at %d and %d (-want +got):\n%s", i, j, diff)
					}
				}
			}
		})
	}
}

// The time of an event is that of the read that brought its data, not of the
// one that brought the blank line.
func TestEventTime(t *testing.T) {
	var p parser
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	var times []int64
	emit := func(e event) bool { times = append(times, e.at.Unix()); return true }
	for i, b := range []string{"data: a\n", "\ndata: b\n\ndata: c\n\n", "dat", "a: d\n\n"} {
		if _, err := p.feed([]byte(b), at(i), emit); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int64{0, 1, 1, 3}, times); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongEvents(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	got, _, err := parse("data: "+long+"\n\n", 5, 4096, 70000)
	if err != nil || len(got) != 1 || got[0] != "data/:"+long {
		t.Errorf("128 KiB: %d events, %v", len(got), err)
	}
	for name, text := range map[string]string{
		"one line":   "data: " + strings.Repeat("x", maxEvent+1) + "\n\n",
		"no end":     strings.Repeat("x", maxEvent+1),
		"many lines": strings.Repeat("data: "+long+"\n", 9) + "\n",
	} {
		if _, _, err := parse(text, 1000, 500000); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParser(f *testing.F) {
	for _, tc := range sseCases {
		f.Add(tc.text, 1, 3)
	}
	f.Add("data: \xff\xfe\r\n\r", 2, 2)
	f.Fuzz(func(t *testing.T, text string, i, j int) {
		n := len(text) + 1
		i, j = max(i, -(i+1))%n, max(j, -(j+1))%n
		whole, comments, err := parse(text)
		parts, commentsCut, errCut := parse(text, i, j)
		if diff := cmp.Diff(whole, parts); diff != "" || comments != commentsCut || (err == nil) != (errCut == nil) {
			t.Fatalf("cut at %d and %d: %d comments, not %d, %v, not %v (-want +got):\n%s", i, j, commentsCut, comments, errCut, err, diff)
		}
	})
}

// vllmChunk is a chunk as vLLM sends it with continuous usage.
const vllmChunk = `{"id":"chatcmpl-3f6c0f0d8a5e4e0f9c1b","object":"chat.completion.chunk","created":1772000000,"model":"moonshotai/Kimi-K2.5",` +
	`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}],` +
	`"usage":{"prompt_tokens":110,"total_tokens":%d,"completion_tokens":%d}}`

// BenchmarkChunk is the processor time of one chunk in whyhang, the read
// system call excluded. The aim is 5 µs.
func BenchmarkChunk(b *testing.B) {
	text := []byte("data: " + fmt.Sprintf(vllmChunk, 120, 10) + "\n\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	s := newTestStream()
	defer s.watch.stop()
	at := time.Now()
	before := processorTime(b)
	for b.Loop() {
		s.e.Chunks = 1
		if more, err := s.parser.feed(text, at, s.event); !more || err != nil {
			b.Fatal(s.failure, err)
		}
	} // The clock also counts what else runs on the machine.
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime is the processor time of this process so far.
func processorTime(b *testing.B) time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

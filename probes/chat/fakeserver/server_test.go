package fakeserver

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func newServer(t *testing.T) *Server {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		return "error: " + err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.Status + " " + string(b)
}

func TestTurns(t *testing.T) {
	s := newServer(t)
	s.Script("/x", Body(200, "text/plain", "first"), Body(503, "text/plain", "then"))
	for i, want := range []string{"200 OK first", "503 Service Unavailable then", "503 Service Unavailable then"} {
		if got := get(t, s.URL()+"/x"); got != want {
			t.Errorf("turn %d: %q", i, got)
		}
	}
	if got := get(t, s.URL()+"/y"); !strings.HasPrefix(got, "404") {
		t.Errorf("a path without a script: %q", got)
	}
	if n := len(s.Requests()); n != 4 {
		t.Errorf("%d requests seen", n)
	}
}

const prompt = `{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":5,"stream":true,"ignore_eos":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`

func ask(t *testing.T, s *Server) string {
	t.Helper()
	r, err := http.Post(s.URL()+"/v1/chat/completions", "application/json", strings.NewReader(prompt))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

// The model sends what it is told to, to several clients at once.
func TestModel(t *testing.T) {
	s := newServer(t)
	s.Serve(Model{ID: "m", Reasoning: "let me", Answer: "it is", ChunkTokens: 3})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got := ask(t, s)
			for _, want := range []string{`"delta":{"reasoning_content":"let me"}`, `"delta":{"content":"it is more4"}`, `"finish_reason":"length"`,
				`"completion_tokens":2`, `"completion_tokens":5`, `"choices":[],`, "data: [DONE]\n\n"} {
				if !strings.Contains(got, want) {
					t.Errorf("no %s in\n%s", want, got)
				}
			}
		})
	}
	wg.Wait()
}

// A client that goes away ends what is played for it.
func TestClientGoes(t *testing.T) {
	s := newServer(t)
	s.Script("/stall", Script{Stream(), Event("x"), Stall()})
	s.Serve(Model{ID: "m", Rate: 0.1})
	for i, path := range []string{"/stall", "/v1/chat/completions"} {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, strings.NewReader(prompt))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		answer.Body.Close()
		limit, stop := context.WithTimeout(context.Background(), 30*time.Second)
		defer stop()
		if !s.WaitIdle(limit) || s.Aborted() != i+1 {
			t.Errorf("%s: %d running, %d aborted", path, s.Running(), s.Aborted())
		}
	}
}

// Close ends what stalls.
func TestClose(t *testing.T) {
	s := newServer(t)
	s.Script("/stall", Script{Stall()})
	got := make(chan string)
	go func() { got <- get(t, s.URL()+"/stall") }()
	for s.Running() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	if answer := <-got; !strings.HasPrefix(answer, "error: ") {
		t.Errorf("%q", answer)
	}
}

package counters

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/chat/fakeserver"
	"github.com/whyhang/whyhang/probes/evidence"
)

// scripted is a server that answers GETs as told.
func scripted(t *testing.T, answers map[string]fakeserver.Script) *fakeserver.Server {
	t.Helper()
	s, err := fakeserver.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for path, a := range answers {
		s.Script(path, a)
	}
	return s
}

func TestRead(t *testing.T) {
	metrics, err := os.ReadFile("../../testdata/counters/vllm.metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	text := func(b string) fakeserver.Script { return fakeserver.Body(200, "text/plain; version=0.0.4", b) }
	const slots = `[{"is_processing":true,"next_token":[{"n_decoded":3}]}]`
	for _, tc := range []struct {
		name, engine string
		answers      map[string]fakeserver.Script
		status       evidence.Status
		endpoint     string
		says         string
	}{
		{"metrics", "vllm", map[string]fakeserver.Script{"/metrics": text(string(metrics))}, evidence.OK, "/metrics", ""},
		{"an unknown engine that shows vLLM's names", "", map[string]fakeserver.Script{"/metrics": text(string(metrics))}, evidence.OK, "/metrics", ""},
		{"a mount that wants a slash", "sglang", map[string]fakeserver.Script{"/metrics": fakeserver.Body(307, "text/plain", ""), "/metrics/": text(string(metrics))}, evidence.OK, "/metrics/", ""},
		{"slots where metrics are off", "llamacpp", map[string]fakeserver.Script{"/metrics": fakeserver.Body(501, "application/json", "{}"), "/slots": text(slots)}, evidence.OK, "/slots", ""},
		{"loads where metrics are off", "sglang", map[string]fakeserver.Script{"/v1/loads": text(`{"loads":[{"num_running_reqs":0}]}`)}, evidence.OK, "/v1/loads", ""},
		{"metrics off", "sglang", nil, evidence.Unsupported, "", "HTTP 404"},
		{"no other endpoint is tried of an unknown engine", "", map[string]fakeserver.Script{"/slots": text(slots)}, evidence.Unsupported, "", "HTTP 404"},
		{"another program's metrics", "vllm", map[string]fakeserver.Script{"/metrics": text("go_goroutines 7\n")}, evidence.Unsupported, "", "no counters that are known"},
		{"a page", "vllm", map[string]fakeserver.Script{"/metrics": text("<html>")}, evidence.Unsupported, "", "not the Prometheus text format"},
		{"a key", "vllm", map[string]fakeserver.Script{"/metrics": fakeserver.Body(401, "application/json", "{}")}, evidence.Denied, "", "HTTP 401"},
		{"no answer", "vllm", map[string]fakeserver.Script{"/metrics": {fakeserver.Stall()}}, evidence.Timeout, "", "no answer within 1.5 s"},
		{"closed", "vllm", map[string]fakeserver.Script{"/metrics": {fakeserver.Close()}}, evidence.Failed, "", "closed the connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := scripted(t, tc.answers)
			r := &Reader{Client: &chat.Client{BaseURL: s.URL()}, Engine: tc.engine}
			look, run := r.Read(context.Background())
			if run.Name != evidence.ProbeCounters || run.Status != tc.status || !strings.Contains(run.Detail, tc.says) || (look != nil) != (tc.status == evidence.OK) {
				t.Fatalf("%+v, %+v", look, run)
			}
			if look == nil {
				return
			}
			if look.Endpoint != tc.endpoint {
				t.Errorf("read at %s, want %s", look.Endpoint, tc.endpoint)
			}
			// The second time it knows where to ask.
			before := len(s.Requests())
			if again, run := r.Read(context.Background()); again == nil || len(s.Requests()) != before+1 {
				t.Errorf("again: %+v after %d requests", run, len(s.Requests())-before)
			}
		})
	}
}

package counters

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/evidence"
)

const (
	// limit is for one endpoint. Engines answer in milliseconds; SGLang collects
	// from the files of all its ranks.
	limit = 1500 * time.Millisecond
	// maxBody bounds one answer, in bytes. vLLM with many models and buckets has
	// about 200 KB.
	maxBody = 4 << 20
)

// endpoint is a place where an engine shows its counters.
type endpoint struct {
	path  string
	parse func([]byte) (evidence.CounterLook, bool, error)
	// of is the engine that has it, "" for all; behind the endpoint that must have
	// answered with a redirect, which the client does not follow.
	of, behind string
}

// endpoints are the places in the order in which they are tried.
var endpoints = []endpoint{
	// Before its metrics, which count tokens when their request is over.
	{path: "/slots", parse: always(parseSlots), of: "llamacpp"},
	{path: "/metrics", parse: parseMetrics},
	{path: "/metrics/", parse: parseMetrics, behind: "/metrics"},
	{path: "/v1/loads", parse: always(parseLoads), of: "sglang"},
}

func always(parse func([]byte) (evidence.CounterLook, error)) func([]byte) (evidence.CounterLook, bool, error) {
	return func(b []byte) (evidence.CounterLook, bool, error) {
		look, err := parse(b)
		return look, err == nil, err
	}
}

// Reader reads the counters of one server again and again. It remembers which
// endpoint has them.
type Reader struct {
	Client *chat.Client
	// Engine is the engine's ID, "" if it is not known.
	Engine string

	at *endpoint
}

// Read takes one look; nil, and why in the probe run, if there is nothing to be
// had. When it was taken is left to the caller. It fails with Denied (401, 403: a
// key), Unsupported (the server shows no counters that are known), Timeout or
// Failed.
func (r *Reader) Read(ctx context.Context) (*evidence.CounterLook, evidence.ProbeRun) {
	start := time.Now()
	look, run := r.read(ctx)
	run.Name, run.TookMS = evidence.ProbeCounters, probes.Milliseconds(time.Since(start))
	return look, run
}

func (r *Reader) read(ctx context.Context) (*evidence.CounterLook, evidence.ProbeRun) {
	try := endpoints
	if r.at != nil {
		try = []endpoint{*r.at}
	}
	run := evidence.ProbeRun{Status: evidence.Unsupported, Detail: "it shows no counters that are known"}
	redirected := ""
	for i := range try {
		e := &try[i]
		if e.of != "" && e.of != r.Engine || e.behind != "" && e.behind != redirected && r.at == nil {
			continue
		}
		status, body, err := r.Client.Get(ctx, e.path, limit, maxBody)
		if t := r.Client.OverTLS(); t != nil && r.at == nil && chat.SpeaksTLS(status, body, err) {
			if status2, body2, err2 := t.Get(ctx, e.path, limit, maxBody); err2 == nil {
				r.Client, status, body, err = t, status2, body2, nil
			}
		}
		switch {
		case err != nil:
			run.Status, run.Detail = evidence.Failed, "GET "+e.path+": "+err.Error()
			if chat.TimedOut(err) {
				run.Status = evidence.Timeout
			}
			return nil, run
		case status == http.StatusUnauthorized, status == http.StatusForbidden:
			run.Status, run.Detail = evidence.Denied, fmt.Sprintf("GET %s: HTTP %d", e.path, status)
			run.Hint = "export WHYHANG_API_KEY=… and run whyhang again with --api-key-env WHYHANG_API_KEY"
			continue
		case status/100 == 3:
			redirected = e.path
			continue
		case status != http.StatusOK:
			if run.Status == evidence.Unsupported {
				run.Detail = fmt.Sprintf("GET %s: HTTP %d%s", e.path, status, switchedOff(r.Engine, e.path))
			}
			continue
		}
		look, ok, err := e.parse(body)
		if err != nil && run.Status == evidence.Unsupported {
			run.Detail = fmt.Sprintf("GET %s: %s", e.path, err)
		}
		if !ok {
			continue
		}
		look.Endpoint = e.path
		r.at = &endpoints[slices.IndexFunc(endpoints, func(o endpoint) bool { return o.path == e.path })]
		return &look, evidence.ProbeRun{Status: evidence.OK}
	}
	return nil, run
}

// switchedOff names the option that shows an engine's metrics, for those that keep
// them to themselves.
func switchedOff(engine, path string) string {
	option := map[string]string{"sglang": "--enable-metrics", "llamacpp": "--metrics"}[engine]
	if option == "" || path != "/metrics" {
		return ""
	}
	return "; " + option + " was not given at its start"
}

package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/whyhang/whyhang/probes"
	"github.com/whyhang/whyhang/probes/evidence"
)

// CheckOptions are what a check needs to know.
type CheckOptions struct {
	Client *Client
	// Model is what the operator wants asked; ServedName what the command line
	// of the server calls its model. Without Model the first of GET /v1/models
	// is asked, without that list ServedName.
	Model      string
	ServedName string
	// Timeout is for the whole check. Default 120 s.
	Timeout time.Duration
	// Moves says whether anything in the server moved since it was called
	// last. It is called once a second from a goroutine, one call at a time.
	// The check gives up after Quiet (default 10 s) in which nothing moved and
	// nothing came. Nil: something always moves.
	Moves func() bool
	Quiet time.Duration
	// Progress, if not nil, is told what is asked next.
	Progress func(string)
}

// checker is one check under way.
type checker struct {
	CheckOptions
	check *evidence.Check
	quiet *quiet
	// health is the text of GET /health.
	health string
	model  string
	// raw is the text of the last answer.
	raw answer
}

// Check asks the server what 2+2 is. At most one request is in flight; all of
// them are counted. A server that turns out to speak TLS is asked over https;
// the URL of the Check is the one that was used in the end. The Check is never nil. A server that does not answer is a
// finding and no failure of the probe.
func Check(ctx context.Context, o CheckOptions) (*evidence.Check, evidence.ProbeRun) {
	start := time.Now()
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Quiet <= 0 {
		o.Quiet = 10 * time.Second
	}
	before := o.Client.Sent()
	caller := ctx
	ctx, cancelTimeout := context.WithTimeout(ctx, o.Timeout)
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	k := &checker{CheckOptions: o, check: &evidence.Check{URL: o.Client.PublicURL(), KeyFrom: o.Client.KeyFrom}}
	k.quiet = watchMoves(o.Moves, o.Quiet, cancel)
	defer k.quiet.stop()
	k.run(ctx)

	took := time.Since(start)
	k.check.TookMS = probes.Milliseconds(took)
	k.check.Requests = o.Client.Sent() - before
	if k.Client != o.Client {
		k.check.Requests += k.Client.Sent()
	}
	run := evidence.ProbeRun{Name: evidence.ProbeCheck, Status: evidence.OK, TookMS: k.check.TookMS}
	switch {
	case caller.Err() != nil && k.check.Verdict == evidence.CheckError:
		run.Status, run.Detail = evidence.Partial, "interrupted"
	case k.check.Verdict == evidence.CheckUnauthorised:
		run.Status, run.Detail = evidence.Denied, k.check.Says
		run.Hint = "export WHYHANG_API_KEY=… and run whyhang again with --api-key-env WHYHANG_API_KEY"
	}
	return k.check, run
}

// run asks in order: health, models, the question, and once more if need be.
func (k *checker) run(ctx context.Context) {
	k.tell("GET /health")
	var f *failure
	k.check.HealthStatus, k.health, f = k.Client.health(ctx)
	if t := k.Client.OverTLS(); t != nil && wantsTLS(k.check.HealthStatus, k.health, f) {
		k.tell("GET /health over TLS")
		if status, body, f2 := t.health(ctx); f2 == nil {
			k.Client, k.check.HealthStatus, k.health, f = t, status, body, nil
			k.check.URL = t.PublicURL()
		}
	}
	reached := f == nil || f.kind == headersTimeout
	if reached {
		k.tell("GET /v1/models")
		k.listModels(ctx)
	}
	if ctx.Err() != nil {
		// The question was never put: say what took the time.
		says := "GET /v1/models got no answer in time"
		if f != nil {
			says = f.says
		}
		k.check.Verdict, k.check.Says = evidence.CheckError, says
		return
	}
	k.choose()
	e := k.ask(ctx, question, 32)
	if k.otherModel(ctx, e) {
		e = k.ask(ctx, question, 32)
	}
	v := k.judge(e)
	switch first := v; {
	case v.again && ctx.Err() != nil:
		v = verdict{is: evidence.CheckError, says: v.says + ", and no time was left for the plainer question"}
	case v.again && v.is == evidence.CheckEmpty:
		v = k.judgeAgain(k.ask(ctx, plainQuestion, 512), first)
	case v.again:
		v = k.judgeAgain(k.ask(ctx, plainQuestion, 64), first)
	}
	k.check.Verdict, k.check.Says = v.is, v.says
}

// tell names the next question, which gets the whole time of silence.
func (k *checker) tell(what string) {
	k.quiet.heard()
	if k.Progress != nil {
		k.Progress("check: " + what)
	}
}

// ask puts one question and keeps the exchange.
func (k *checker) ask(ctx context.Context, prompt string, maxTokens int) evidence.Exchange {
	k.tell(prompt)
	e, raw := k.Client.ask(ctx, Request{
		Model: k.model, Prompt: prompt, MaxTokens: maxTokens,
		// The whole check is limited by ctx, silence by the watch for movement;
		// a stream that has begun and pauses for half of the time stalls.
		Limits: Limits{Headers: k.Timeout, FirstToken: k.Timeout, Stall: k.Timeout / 2, Request: 2 * k.Timeout},
		heard:  k.quiet.heard,
	})
	k.raw = raw
	// The gaps of 32 tokens are no measurement.
	e.GapsMS = nil
	k.check.Exchanges = append(k.check.Exchanges, e)
	return e
}

func (k *checker) listModels(ctx context.Context) {
	ids, _ := k.Client.models(ctx)
	k.check.Models = nil
	for _, id := range ids {
		k.check.Models = append(k.check.Models, k.Client.clean(id, maxModelID))
	}
	if k.Model == "" && len(ids) > 0 {
		k.model = ids[0]
	}
}

// choose settles which model is asked.
func (k *checker) choose() {
	switch {
	case k.Model != "":
		k.model = k.Model
	case k.model != "":
	case k.ServedName != "":
		k.model = k.ServedName
	default:
		k.model = "default" // llama.cpp and others serve one model under any name
	}
	k.check.ModelID = k.Client.clean(k.model, maxModelID)
}

// otherModel says whether to ask again under another name: the server does not
// know the name, it came from the command line, and the server offers another.
func (k *checker) otherModel(ctx context.Context, e evidence.Exchange) bool {
	if k.Model != "" || !unknownModel(e, k.raw) || ctx.Err() != nil {
		return false
	}
	asked := k.model
	if len(k.check.Models) == 0 {
		k.listModels(ctx)
	}
	if k.model == asked {
		return false
	}
	k.choose()
	return true
}

// unknownModel: the request was refused because of the name of the model.
func unknownModel(e evidence.Exchange, a answer) bool {
	return slices.Contains([]int{400, 404, 422}, e.HTTPStatus) && aboutModel.MatchString(a.refusal) && !aboutChat.MatchString(a.refusal)
}

// offers is the list of models for a sentence.
func (k *checker) offers() string {
	if len(k.check.Models) == 0 {
		return "and names none that it does"
	}
	const most = 5
	text := "it offers "
	for i, id := range k.check.Models {
		if i == most {
			return text + fmt.Sprintf(" and %d more", len(k.check.Models)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += k.Client.quote(id, 120)
	}
	return text
}

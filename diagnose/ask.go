package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/whyhang/whyhang/probes/bench"
	"github.com/whyhang/whyhang/probes/chat"
	"github.com/whyhang/whyhang/probes/evidence"
	"github.com/whyhang/whyhang/probes/process"
	"github.com/whyhang/whyhang/probes/socket"
	"github.com/whyhang/whyhang/rules"
	"github.com/whyhang/whyhang/rules/facts"
	"github.com/whyhang/whyhang/rules/rule"
)

// mayAsk tells whether the server is to be asked now: it listens, it may be
// asked, and nothing seen so far says that asking is of no use.
func (r *run) mayAsk(ctx context.Context, j *rules.Judgement) bool {
	if r.Passive || r.NoCheck || r.s.Check != nil || !r.alive() {
		return false
	}
	door := &j.Case.Door
	if door.URL == "" && r.URL == "" {
		return false
	}
	switch j.Verdict {
	case rule.Gone:
		return false
	case rule.Broken:
		// A right answer outranks what is only likely; and it tells a part that is
		// gone from one that a new version of the engine does not have.
		return j.Strength < rule.Strong || j.Carried.Rule == "missing-head"
	case rule.Stalled:
		return j.Cause != rule.Paused || j.Strength < rule.Strong // a paused process answers nobody
	case rule.Loading:
		// Its log says what it does, and that it is not ready: believe it, unless
		// it lists its models, which no engine does before it can be asked. The
		// ready line may be missing from a log that is kept quiet. A server without
		// a log that moves may be up and busy.
		return !j.Case.Phases.Known || r.listsModels(ctx, j)
	}
	// The log knows the start, has no ready line, and nothing is decided yet:
	// look on, unless the window is over.
	if j.Case.Phases.Known && j.Case.Phases.Ready == nil && j.Case.Moves.WindowMS < 2000 {
		return false
	}
	return true
}

// listsModels asks the server's own door for its models, which costs it
// nothing; not more often than every few looks.
func (r *run) listsModels(ctx context.Context, j *rules.Judgement) bool {
	const pause, limit = 2 * time.Second, 2 * time.Second
	if r.listed {
		return true
	}
	if j.Case.Door.Listener < 0 || j.Case.Moves.WindowMS < 1000 || time.Since(r.knocked) < pause {
		return false
	}
	r.knocked = time.Now()
	client, err := r.client(ctx, j)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r.listed = client.ListsModels(ctx)
	return r.listed
}

// whyNotAsked says why mayAsk said no.
func (r *run) whyNotAsked(j *rules.Judgement) string {
	switch {
	case r.Passive:
		return "not asked: --passive"
	case r.NoCheck:
		return "not asked: --no-check"
	case j.Case.Door.Ambiguous:
		return "not asked: it listens on several ports and nothing tells which takes requests; --url names one"
	case j.Case.Door.URL == "" && r.URL == "":
		if j.Case.Door.NotKnown != "" {
			return "not asked: " + j.Case.Door.NotKnown
		}
		return "not asked: it does not listen where requests would come in"
	}
	return fmt.Sprintf("not asked: %s (%s) needs no answer", j.Verdict, j.Cause)
}

// ask puts the check and, if the answer is right, the short benchmark.
func (r *run) ask(ctx context.Context, j *rules.Judgement) {
	client, err := r.client(ctx, j)
	if err != nil {
		p := evidence.ProbeRun{Name: evidence.ProbeCheck, Status: evidence.Failed, Detail: err.Error()}
		if ns, ok := err.(*socket.NamespaceError); ok {
			p.Status, p.Hint = evidence.Denied, ns.Hint()
		}
		r.note(p)
		return
	}
	watch := newCountersWatch(client.At(client.BaseURL), j)
	watch.look(ctx, r, "")
	var mu sync.Mutex // Moves is called from a goroutine of the check
	o := chat.CheckOptions{Client: client, Model: r.Model, ServedName: servedName(&j.Case.Engine), Timeout: r.CheckTimeout,
		Progress: func(s string) { r.tell("check: " + s) },
		Moves: func() bool {
			mu.Lock()
			defer mu.Unlock()
			watch.again(ctx, r)
			return r.movesWhileAsked(ctx)
		}}
	check, run := chat.Check(ctx, o)
	mu.Lock()
	defer mu.Unlock()
	r.s.Check = check
	r.note(run)
	if len(r.s.Counters) > 0 {
		watch.look(ctx, r, "check")
		if check.Verdict == evidence.CheckBusy {
			watch.watch(ctx, r, "check")
		}
	}
	r.frame(ctx, frameOptions{during: "check"})
	if !r.alive() || ctx.Err() != nil {
		return
	}
	if check.Verdict != evidence.CheckPass && check.Verdict != evidence.CheckPassTruncated {
		// A second reading of the locks, now that a request is stuck in it.
		r.twice(ctx, "check")
		return
	}
	if r.NoBench {
		return
	}
	// The check may have found that the door speaks TLS.
	measured := client.At(check.URL)
	plan := bench.Options{Client: measured, Model: check.ModelID, Backend: j.Case.Engine.ID(), Budget: r.BenchBudget, Progress: r.Progress}
	if base := r.BaselineTokS; base != nil {
		plan.Against = []float64{*base * (1 - r.TolerancePct/100), *base * (1 + r.TolerancePct/100)}
	}
	b, run := bench.SingleStream(ctx, plan)
	r.s.Bench = b
	r.note(run)
	r.frame(ctx, frameOptions{during: "bench"})
}

// client reaches the door of the server, in its network namespace.
func (r *run) client(ctx context.Context, j *rules.Judgement) (*chat.Client, error) {
	c := &chat.Client{BaseURL: j.Case.Door.URL, APIKey: r.APIKey}
	var err error
	if r.URL != "" {
		// The operator has named the place: it is asked as it stands there.
		u, err := url.Parse(r.URL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("--url %s: no URL such as http://127.0.0.1:8000", r.URL)
		}
		c.BaseURL = r.URL
	}
	r.useOwnKey(ctx, j, c)
	if path := j.Case.Door.Socket; path != "" && r.URL == "" {
		var tree []int
		for i := range r.s.Processes {
			tree = append(tree, r.s.Processes[i].PID)
		}
		c.BaseURL, c.Socket = "http://localhost", path
		c.Dial, err = socket.UnixDialer(procDir(r.Proc), j.Case.Door.PID(r.s), path, tree)
		return c, err
	}
	dial, err := socket.Dialer(procDir(r.Proc), j.Case.Door.PID(r.s), r.own)
	if err != nil {
		return nil, err
	}
	c.Dial = dial
	if r.URL == "" && j.Case.Door.Shared {
		c.Dial = socket.AcceptedBy(procDir(r.Proc), r.s.Processes, dial)
	}
	return c, nil
}

// useOwnKey gives the client the key that the server was started with, if the
// operator gave none and the server's own socket is asked. It goes nowhere else.
func (r *run) useOwnKey(ctx context.Context, j *rules.Judgement, c *chat.Client) {
	door, e := &j.Case.Door, j.Case.Engine.Known
	if c.APIKey != "" || r.URL != "" || door.Listener < 0 || r.s.Sockets.Listeners[door.Listener].Owner != evidence.OwnerDescriptor {
		return
	}
	names := process.KeyNames{Options: []string{"--api-key"}}
	if e != nil {
		f := &e.Flags
		names = process.KeyNames{Options: f.APIKey, List: f.APIKeyList}
		if len(f.APIKey) > 0 {
			names.Variable = f.Env[f.APIKey[0]]
		}
	}
	c.APIKey, c.KeyFrom = r.reader.APIKey(ctx, cmp.Or(j.Case.Engine.MainPID, r.s.Target.PID), names)
}

// movesWhileAsked takes a look and tells whether anything moved since the one
// before: an engine that works on the answer shows it.
func (r *run) movesWhileAsked(ctx context.Context) bool {
	r.frame(ctx, frameOptions{during: "check"})
	n := len(r.s.Frames)
	return movesBetween(r.s, n-2, n-1)
}

// movesBetween tells whether anything was done between two looks. What is not
// known counts as movement: nobody is to be called still for it.
func movesBetween(s *evidence.Snapshot, from, to int) bool {
	m := facts.Between(s, from, to)
	return !m.Looked || facts.Furthest(&m) != nil || facts.Works(&m)
}

// servedName is what the server's command line calls its model.
func servedName(e *facts.Engine) string {
	if e.Served != "" {
		return e.Served
	}
	return e.Model
}

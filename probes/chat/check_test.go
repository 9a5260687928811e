package chat

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
	"github.com/whyhang/whyhang/probes/evidence"
)

// says is one chunk with content, then the end for that reason.
func says(content, reason string) fakeserver.Script {
	return fakeserver.Body(200, "text/event-stream", events(
		fmt.Sprintf(`{"choices":[{"delta":{"content":%q}}]}`, content), fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":%q}]}`, reason), use, done))
}

func thinks(reasoning, reason string) fakeserver.Script {
	return fakeserver.Body(200, "text/event-stream", events(
		fmt.Sprintf(`{"choices":[{"delta":{"reasoning_content":%q}}]}`, reasoning), fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":%q}]}`, reason), use, done))
}

func jsonBody(status int, body string) fakeserver.Script {
	return fakeserver.Body(status, "application/json", body)
}

// turns are the answers to the chat requests, in order.
func turns(all ...fakeserver.Script) []fakeserver.Script { return all }

func TestVerdicts(t *testing.T) {
	loadingBody := `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
	for _, tc := range []struct {
		name   string
		health fakeserver.Script // 200 if nil
		chat   []fakeserver.Script
		want   evidence.CheckVerdict
		asked  int // chat requests
		says   string
	}{
		{"right", nil, turns(says("4", "stop")), evidence.CheckPass, 1, `^it answered "4" in [\d.]+ m?s$`},
		{"right in reasoning", nil, turns(thinks("2+2 = 4", "length")), evidence.CheckPass, 1, `^it answered "2\+2 = 4" in`},
		{"the incident", nil, turns(says(incidentAnswer, "length")), evidence.CheckPass, 1, `^it answered "… wants me to reply in one word. 2\+2 = 4 The word" in`},
		{"right the second time", nil, turns(says(`The answer is "2+2"`, "stop"), says("2 + 2 is 4.", "stop")), evidence.CheckPass, 2, `^it answered "2 \+ 2 is 4." in .*s, to the plainer question$`},
		{"reasoning cut off", nil, turns(thinks("The user wants one word for the sum of two and two, so I", "length")), evidence.CheckPassTruncated, 1, `^it reasons readably \("The user wants one word .*"\) and was cut off at 32 tokens after`},
		{"reasoning cut off, inline", nil, turns(says("<think>\nOkay, so I have to reply with", "length")), evidence.CheckPassTruncated, 1, "reasons readably"},
		{"reasoning in Chinese", nil, turns(thinks("用户问二加二等于多少，要求用一个词回答。我", "length")), evidence.CheckPassTruncated, 1, "reasons readably"},
		{"reasoning that goes wrong", nil, turns(thinks("The user asks. 2+2 = 5. So the word is", "length"), thinks("So 2+2 = 5, I think, and", "length")), evidence.CheckWrong, 2, "asked more plainly"},
		{"off the topic, cut off", nil, turns(says("Once upon a time a cat lived in a small house near the sea and", "length"), says("Once upon a time a dog", "length")), evidence.CheckWrong, 2, ""},
		{"wrong twice", nil, turns(says("Paris", "stop"), says("It is 5.", "stop")), evidence.CheckWrong, 2, `^it answered "Paris" and, asked more plainly, "It is 5."$`},
		{"wrong, then garbage", nil, turns(says("Paris", "stop"), says("!!!!!!!!!!!!", "length")), evidence.CheckGarbage, 2, `^it answered "Paris"; asked more plainly, it answered "!!!!`},
		{"wrong, then an error", nil, turns(says("Paris", "stop"), jsonBody(500, `{"error":"boom"}`)), evidence.CheckError, 2, `asked more plainly, it answers HTTP 500, "boom"$`},
		{"garbage", nil, turns(says("!!!!!!!!!!!!", "length")), evidence.CheckGarbage, 1, `^it answered "!!!!!!!!!!!!": one character repeated$`},
		{"garbage in reasoning", nil, turns(thinks("!!!!!!!!!!!!", "length")), evidence.CheckGarbage, 1, ""},
		{"NaN", nil, turns(fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"delta":{"content":"4"},"finish_reason":"stop","matched_stop":"NaN happened"}]}`, done))), evidence.CheckGarbage, 1, "NaN in the logits"},
		{"empty", nil, turns(fakeserver.Body(200, "text/event-stream", events(role, finish, done))), evidence.CheckEmpty, 1, `^it ended its answer without any text, finish_reason "stop"$`},
		{"blank", nil, turns(says(" \n ", "stop")), evidence.CheckEmpty, 1, ""},
		{"hidden thoughts, then the answer", nil, turns(says("", "length"), says("4", "stop")), evidence.CheckPass, 2, ""},
		{"hidden thoughts only", nil, turns(says("", "length")), evidence.CheckEmpty, 2, ""},
		{"does not stop", nil, turns(fakeserver.Script{fakeserver.Stream(), fakeserver.Send(events(`{"choices":[{"delta":{"content":"2+2 = 4. And then more and more"}}]}`)), fakeserver.Repeat(-1, events(`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"x"}}]}}]}`))}), evidence.CheckPass, 1, "and did not stop at 32 tokens$"},
		{"loading (llama.cpp)", jsonBody(503, loadingBody), turns(jsonBody(503, loadingBody)), evidence.CheckLoading, 1, `^it answers HTTP 503, "Loading model"$`},
		{"loading (SGLang)", fakeserver.Body(503, "text/plain", ""), turns(fakeserver.Body(503, "text/plain", "")), evidence.CheckLoading, 1, `^it answers HTTP 503, and the same to GET /health$`},
		{"503 and healthy", nil, turns(fakeserver.Body(503, "text/plain", "")), evidence.CheckError, 1, `^it answers HTTP 503$`},
		{"queue full (SGLang)", fakeserver.Body(503, "text/plain", ""), turns(jsonBody(503, `{"object":"error","message":"The request queue is full."}`)), evidence.CheckBusy, 1, "queue is full"},
		{"busy", nil, turns(jsonBody(429, `{"error":"Model is overloaded"}`)), evidence.CheckBusy, 1, `^it answers HTTP 429, "Model is overloaded"$`},
		{"unauthorised", nil, turns(jsonBody(401, `{"error":"Unauthorized"}`)), evidence.CheckUnauthorised, 1, `^it answers HTTP 401 to a request without an API key$`},
		{"forbidden", nil, turns(jsonBody(403, `{}`)), evidence.CheckUnauthorised, 1, "HTTP 403"},
		{"no such path", nil, turns(jsonBody(404, `{"detail":"Not Found"}`)), evidence.CheckNoEndpoint, 1, `^POST /v1/chat/completions: it answers HTTP 404, "Not Found"$`},
		{"no such path (llama.cpp)", nil, turns(jsonBody(404, `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`)), evidence.CheckNoEndpoint, 1, "File Not Found"},
		{"method not allowed", nil, turns(fakeserver.Body(405, "text/plain", "")), evidence.CheckNoEndpoint, 1, "405"},
		{"HTML", nil, turns(fakeserver.Body(200, "text/html", "<html>hello</html>")), evidence.CheckNoEndpoint, 1, "something else than a chat completion"},
		{"ok", nil, turns(fakeserver.Body(200, "text/plain", "ok")), evidence.CheckNoEndpoint, 1, ""},
		{"an embedding model", nil, turns(jsonBody(400, `{"error":{"message":"The model does not support Chat Completions API","code":400}}`)), evidence.CheckNoEndpoint, 2, "does not support Chat"},
		{"no chat template", nil, turns(jsonBody(400, `{"error":{"message":"default chat template is no longer allowed"}}`)), evidence.CheckNoEndpoint, 2, "chat template"},
		{"engine dead", nil, turns(jsonBody(500, `{"error":{"message":"EngineCore encountered an issue."}}`)), evidence.CheckError, 1, `HTTP 500, "EngineCore`},
		{"error in the stream", nil, turns(fakeserver.Body(200, "text/event-stream", events(four, `{"error":{"message":"boom"}}`))), evidence.CheckError, 1, "sent an error after 1 chunk: boom"},
		{"broken off", nil, turns(fakeserver.Body(200, "text/event-stream", events(four))), evidence.CheckError, 1, "ended after 1 chunk"},
		{"closed", nil, turns(fakeserver.Script{fakeserver.Close()}), evidence.CheckError, 1, "closed the connection"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			if tc.health == nil {
				tc.health = fakeserver.Body(200, "text/plain", "")
			}
			s.Script("/health", tc.health)
			s.Script("/v1/models", jsonBody(200, `{"data":[{"id":"m"},{"id":"lora"}]}`))
			s.Script(chatPath, tc.chat...)
			check, run := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}, ServedName: "from argv"})
			if check.Verdict != tc.want || !regexp.MustCompile(tc.says).MatchString(check.Says) {
				t.Errorf("%s: %s\nwant %s: %s", check.Verdict, check.Says, tc.want, tc.says)
			}
			if strings.HasSuffix(check.Says, ".") || check.Says == "" {
				t.Errorf("not a sentence without its period: %q", check.Says)
			}
			asked := 0
			for _, r := range s.Requests() {
				if r.Path == chatPath {
					asked++
				}
			}
			if asked != tc.asked || check.Requests != len(s.Requests()) {
				t.Errorf("%d questions, want %d; %d requests, %d counted", asked, tc.asked, len(s.Requests()), check.Requests)
			}
			if check.ModelID != "m" || cmp.Diff([]string{"m", "lora"}, check.Models) != "" || check.URL != s.URL() {
				t.Errorf("model %q of %q at %s", check.ModelID, check.Models, check.URL)
			}
			if want := map[bool]evidence.Status{true: evidence.Denied, false: evidence.OK}[tc.want == evidence.CheckUnauthorised]; run.Status != want || run.Name != evidence.ProbeCheck {
				t.Errorf("probe run %+v", run)
			}
		})
	}
}

func TestWhichModel(t *testing.T) {
	two := `{"data":[{"id":"first"},{"id":"second"}]}`
	for _, tc := range []struct {
		name, list string
		o          CheckOptions
		serves     string
		asked      string // names asked, in order
		want       evidence.CheckVerdict
		says       string
	}{
		{"the operator's", two, CheckOptions{Model: "second", ServedName: "argv"}, "second", "second", evidence.CheckPass, ""},
		{"the server's first", two, CheckOptions{ServedName: "argv"}, "first", "first", evidence.CheckPass, ""},
		{"the command line's", `{"data":[]}`, CheckOptions{ServedName: "argv"}, "argv", "argv", evidence.CheckPass, ""},
		{"none at all", `{}`, CheckOptions{}, "default", "default", evidence.CheckPass, ""},
		{"odd list", `{"data":[{"id":7},{"id":"second"}]}`, CheckOptions{}, "second", "second", evidence.CheckPass, ""},
		{"the operator's, unknown", two, CheckOptions{Model: "typo"}, "first", "typo", evidence.CheckNoEndpoint, `it does not know the model "typo"; it offers "first", "second"`},
		{"none offered", `{"data":[]}`, CheckOptions{ServedName: "argv"}, "other", "argv", evidence.CheckNoEndpoint, "and names none that it does"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t)
			s.Serve(fakeserver.Model{ID: tc.serves, Answer: "4"})
			s.Script("/v1/models", jsonBody(200, tc.list))
			tc.o.Client = &Client{BaseURL: s.URL()}
			check, _ := Check(context.Background(), tc.o)
			if check.Verdict != tc.want || !strings.Contains(check.Says, tc.says) {
				t.Errorf("%s: %s", check.Verdict, check.Says)
			}
			if got := modelsAsked(s); got != tc.asked {
				t.Errorf("asked for %s, want %s", got, tc.asked)
			}
		})
	}
	t.Run("the list comes late", func(t *testing.T) {
		s := newServer(t)
		s.Serve(fakeserver.Model{ID: "first", Answer: "4"})
		s.Script("/v1/models", jsonBody(500, ""), jsonBody(200, two))
		check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}, ServedName: "argv"})
		if got := modelsAsked(s); check.Verdict != evidence.CheckPass || got != "argv first" || check.ModelID != "first" || len(check.Exchanges) != 2 {
			t.Errorf("%s: %s, asked for %s", check.Verdict, check.Says, got)
		}
	})
}

func modelsAsked(s *fakeserver.Server) string {
	var names []string
	for _, r := range s.Requests() {
		if m := regexp.MustCompile(`"model":"([^"]*)"`).FindStringSubmatch(r.Body); m != nil {
			names = append(names, m[1])
		}
	}
	return strings.Join(names, " ")
}

// The questions are the ones that were agreed on.
func TestQuestions(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "Paris"})
	check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}})
	type asked struct {
		Prompt    string
		MaxTokens int
	}
	var got []asked
	for _, e := range check.Exchanges {
		got = append(got, asked{e.Prompt, e.MaxTokens})
	}
	if diff := cmp.Diff([]asked{{"What is 2+2? Reply in one word.", 32}, {"What is 2+2?", 64}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.Most() != 1 {
		t.Errorf("%d requests at once", s.Most())
	}
	for i, r := range s.Requests()[2:] {
		want := (&Request{Model: "m", Prompt: got[i].Prompt, MaxTokens: got[i].MaxTokens}).body()
		if r.Body != want {
			t.Errorf("sent %s\nwant %s", r.Body, want)
		}
	}
}

// A server in which nothing moves is given up early; one that works is not.
func TestMoves(t *testing.T) {
	still := func() bool { return false }
	run := func(t *testing.T, moves func() bool, script fakeserver.Script) *evidence.Check {
		t.Parallel()
		s := newServer(t)
		s.Serve(fakeserver.Model{ID: "m"})
		s.Script(chatPath, script)
		check, run := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}, Moves: moves, Quiet: 2 * time.Second})
		if run.Status != evidence.OK {
			t.Errorf("probe run %+v", run)
		}
		idle(t, s)
		return check
	}
	stream, five := fakeserver.Stream(), fakeserver.Send(strings.Repeat(events(four), 5))
	for _, tc := range []struct {
		name   string
		script fakeserver.Script
		kind   string
		says   string
	}{
		{"no headers", fakeserver.Script{fakeserver.Stall()}, headersTimeout, `^no headers within [\d.]+ s$`},
		{"no token", fakeserver.Script{stream, fakeserver.Stall()}, ttftTimeout, `^headers after [\d.]+ m?s, but no token within [\d.]+ s$`},
		{"stalled", fakeserver.Script{stream, five, fakeserver.Stall()}, stall, `^the stream stalled after 5 chunks for [\d.]+ s$`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := run(t, still, tc.script)
			e := check.Exchanges[len(check.Exchanges)-1]
			if check.Verdict != evidence.CheckError || e.ErrorType != tc.kind || !regexp.MustCompile(tc.says).MatchString(check.Says) {
				t.Errorf("%s, %s: %s", check.Verdict, e.ErrorType, check.Says)
			}
		})
	}
	t.Run("something moves", func(t *testing.T) {
		check := run(t, func() bool { return true }, append(fakeserver.Script{fakeserver.Sleep(3 * time.Second)}, says("4", "stop")...))
		if check.Verdict != evidence.CheckPass {
			t.Errorf("%s: %s", check.Verdict, check.Says)
		}
	})
	t.Run("tokens are movement", func(t *testing.T) {
		script := fakeserver.Script{stream}
		for range 10 {
			script = append(script, fakeserver.Send(events(`{"choices":[{"delta":{"reasoning":"I add two and two. "}}]}`)), fakeserver.Sleep(300*time.Millisecond))
		}
		check := run(t, still, append(script, fakeserver.Send(events(four, finish, done))))
		if check.Verdict != evidence.CheckPass {
			t.Errorf("%s: %s", check.Verdict, check.Says)
		}
	})
}

func TestCheckTimeout(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m"})
	s.Script(chatPath, fakeserver.Script{fakeserver.Stall()})
	check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}, Timeout: 2 * time.Second})
	if check.Verdict != evidence.CheckError || check.Exchanges[0].ErrorType != headersTimeout {
		t.Errorf("%s: %s", check.Verdict, check.Says)
	}
	idle(t, s)
}

func TestCheckInterrupted(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m"})
	ctx, cancel := context.WithCancel(context.Background())
	s.Handle(chatPath, func(w http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	check, run := Check(ctx, CheckOptions{Client: &Client{BaseURL: s.URL()}})
	if check.Exchanges[0].ErrorType != interrupted || run.Status != evidence.Partial || run.Detail != "interrupted" {
		t.Errorf("%s: %s, %+v", check.Exchanges[0].ErrorType, check.Says, run)
	}
	idle(t, s)
}

// A /health that hangs delays the check by its limit only, and is not known
// then.
func TestHealthHangs(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4"})
	s.Script("/health", fakeserver.Script{fakeserver.Stall()})
	check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL()}})
	if check.Verdict != evidence.CheckPass || check.HealthStatus != 0 || check.Requests != 3 {
		t.Errorf("%s: %s, health %d, %d requests", check.Verdict, check.Says, check.HealthStatus, check.Requests)
	}
}

func TestCheckConnectFailures(t *testing.T) {
	gone := newServer(t)
	gone.Close()
	check, run := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: gone.URL()}})
	if check.Verdict != evidence.CheckError || check.Exchanges[0].ErrorType != connectRefused || check.Requests != 2 || run.Status != evidence.OK {
		t.Errorf("%s: %s after %d requests, %+v", check.Verdict, check.Says, check.Requests, run)
	}
}

// A TLS server is found out, whatever it does with a plain request.
func TestCheckOverTLS(t *testing.T) {
	s := selfSigned(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4", Key: "k"})
	check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: "http://" + s.Addr(), APIKey: "k"}})
	if check.Verdict != evidence.CheckPass || check.URL != s.URL() || check.Requests != 4 {
		t.Errorf("%s: %s, at %s, %d requests", check.Verdict, check.Says, check.URL, check.Requests)
	}
	for name, status := range map[string]failure{"alert": {kind: tlsFailed}, "closed (uvicorn)": {kind: closed}} {
		if !wantsTLS(0, "", &status) {
			t.Errorf("%s is not taken for TLS", name)
		}
	}
	if wantsTLS(200, "", nil) || wantsTLS(0, "", &failure{kind: connectRefused}) {
		t.Error("taken for TLS")
	}
}

func TestKeyIsUsed(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4", Key: secretKey})
	for _, tc := range []struct {
		key, says string
		want      evidence.CheckVerdict
	}{{secretKey, "", evidence.CheckPass}, {"wrong", "to the API key it was given", evidence.CheckUnauthorised}, {"", "without an API key", evidence.CheckUnauthorised}} {
		check, run := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL(), APIKey: tc.key}, ServedName: "m"})
		if check.Verdict != tc.want || !strings.Contains(check.Says, tc.says) || (run.Hint == "") != (tc.want == evidence.CheckPass) {
			t.Errorf("%q: %s: %s, hint %q", tc.key, check.Verdict, check.Says, run.Hint)
		}
	}
}

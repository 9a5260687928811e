package chat

import (
	"context"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
)

func TestFailures(t *testing.T) {
	short := 250 * time.Millisecond
	stream, send := fakeserver.Stream(), fakeserver.Send
	five := strings.Repeat(events(four), 5)
	for _, tc := range []struct {
		name, kind, says string
		limits           Limits
		script           fakeserver.Script
	}{
		{"no answer line", headersTimeout, "no headers within 0.", Limits{Headers: short}, fakeserver.Script{fakeserver.Stall()}},
		{"half an answer line", headersTimeout, "no headers within 0.", Limits{Headers: short}, fakeserver.Script{send("HTTP/1.1 200 O"), fakeserver.Stall()}},
		{"headers only", ttftTimeout, "but no token within 0.", Limits{FirstToken: short}, fakeserver.Script{stream, fakeserver.Stall()}},
		{"keep-alives only", ttftTimeout, "but no token within", Limits{FirstToken: short}, fakeserver.Script{stream, fakeserver.Repeat(3, ": ping\n\n"), fakeserver.Stall()}},
		{"role only", ttftTimeout, "1 event without text", Limits{FirstToken: short}, fakeserver.Script{stream, send(events(role)), fakeserver.Stall()}},
		{"stall", stall, "the stream stalled after 5 chunks for 0.", Limits{Stall: short}, fakeserver.Script{stream, send(five), fakeserver.Stall()}},
		{"stall, counted by the server", stall, "the stream stalled after 7 tokens for 0.", Limits{Stall: short},
			fakeserver.Script{stream, send(events(`{"choices":[{"delta":{"content":"a"}}],"usage":{"completion_tokens":7}}`)), fakeserver.Stall()}},
		{"stall with keep-alives", stall, "the stream stalled after 5 chunks", Limits{Stall: short}, fakeserver.Script{stream, send(five), fakeserver.Repeat(-1, ": ping\n\n")}},
		{"time is over", requestTimeout, "not finished within", Limits{Request: 400 * time.Millisecond, Stall: time.Minute}, trickle()},
		{"closed before the answer", closed, "it closed the connection without an answer", Limits{}, fakeserver.Script{fakeserver.Close()}},
		{"reset before the answer", closed, "without an answer", Limits{}, fakeserver.Script{fakeserver.Reset()}},
		{"not HTTP", badHTTP, "its answer is no HTTP", Limits{}, fakeserver.Script{send("+OK ready\r\n\r\n")}},
		{"redirect", http3xx, "it answers HTTP 302", Limits{}, fakeserver.Script{send("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n")}},
		{"refused", http4xx, `it answers HTTP 418, "no coffee"`, Limits{}, fakeserver.Body(418, "application/json", `{"error":{"message":"no coffee","code":"x"}}`)},
		{"failed", http5xx, `it answers HTTP 500, "EngineDeadError"`, Limits{}, fakeserver.Body(500, "application/json", `{"object":"error","message":"EngineDeadError","code":500}`)},
		{"error after 200 (vLLM)", streamError, "the server sent an error after 1 chunk: boom", Limits{}, fakeserver.Body(200, "text/event-stream", events(four, `{"error":{"message":"boom","code":500}}`, done))},
		{"error with a string code (LMDeploy)", streamError, "boom", Limits{}, fakeserver.Body(200, "text/event-stream", events(`{"error":{"message":"boom","code":"500"}}`))},
		{"error as text (SGLang)", streamError, "boom", Limits{}, fakeserver.Body(200, "text/event-stream", events(`{"error":"boom"}`, done))},
		{"error in the older form", streamError, "boom", Limits{}, fakeserver.Body(200, "text/event-stream", events(`{"object":"error","message":"boom","code":400}`, done))},
		{"error: as a field (llama.cpp)", streamError, "boom", Limits{}, fakeserver.Body(200, "text/event-stream", events(four)+"error: {\"code\":500,\"message\":\"boom\"}\n\n")},
		{"event: error", streamError, "boom", Limits{}, fakeserver.Body(200, "text/event-stream", "event: error\ndata: {\"message\":\"boom\"}\n\n")},
		{"error instead of a stream", streamError, "boom", Limits{}, fakeserver.Body(200, "application/json", `{"error":{"message":"boom"}}`)},
		{"end without finish_reason", truncated, "the stream ended after 5 chunks, without", Limits{}, fakeserver.Body(200, "text/event-stream", five)},
		{"end within an event", truncated, "the stream ended after 1 chunk, without", Limits{}, fakeserver.Body(200, "text/event-stream", events(four)+"data: {\"choi")},
		{"reset within the stream", truncated, "the stream broke off after 1 chunk", Limits{}, fakeserver.Script{stream, send(events(four)), fakeserver.Sleep(100 * time.Millisecond), fakeserver.Reset()}},
		{"less than Content-Length", truncated, "the stream", Limits{}, fakeserver.Script{send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + events(four))}},
		{"empty stream", truncated, "the stream ended after 0 chunks", Limits{}, fakeserver.Body(200, "text/event-stream", "")},
		{"no text", noTokens, "the answer ended without any text", Limits{}, fakeserver.Body(200, "text/event-stream", events(role, finish, done))},
		{"no JSON", badJSON, "after 1 chunk an event could not be read", Limits{}, fakeserver.Body(200, "text/event-stream", events(four, "{oops", done))},
		{"event too long", badJSON, "longer than 1048576 bytes", Limits{}, fakeserver.Script{stream, send("data: "), fakeserver.Repeat(-1, strings.Repeat("x", 4096))}},
		{"HTML", notOpenAI, "something else than a chat completion", Limits{}, fakeserver.Body(200, "text/html", "<html><body>It works!</body></html>")},
		{"ok", notOpenAI, "something else", Limits{}, fakeserver.Body(200, "text/plain", "ok")},
		{"other JSON", notOpenAI, "something else", Limits{}, fakeserver.Body(200, "application/json", `{"status":"ok"}`)},
		{"empty body", notOpenAI, "something else", Limits{}, fakeserver.Body(200, "text/plain", "")},
		{"aborted", abortedByServer, `finish_reason "abort" after 1 chunk`, Limits{}, fakeserver.Body(200, "text/event-stream", events(four, `{"choices":[{"delta":{},"finish_reason":"abort"}]}`, done))},
		{"endless answer", tooLong, "it did not stop at 32 tokens", Limits{}, fakeserver.Script{stream, fakeserver.Repeat(-1, events(four))}},
		{"endless keep-alives", tooLong, "the stream is longer than 64 MiB", Limits{}, fakeserver.Script{stream, fakeserver.Repeat(-1, strings.Repeat(": ping\n", 4<<10))}},
		{"endless headers", badHTTP, "", Limits{}, fakeserver.Script{send("HTTP/1.1 200 OK\r\n"), fakeserver.Repeat(-1, "X-A: "+strings.Repeat("a", 1000)+"\r\n")}},
		{"endless error body", http5xx, "it answers HTTP 500", Limits{}, fakeserver.Script{fakeserver.Head(500, "text/plain"), fakeserver.Repeat(-1, strings.Repeat("x", 4096))}},
		{"endless whole answer", notOpenAI, "something else", Limits{}, fakeserver.Script{fakeserver.Head(200, "application/json"), send("{"), fakeserver.Repeat(-1, strings.Repeat(" ", 4096))}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			e := asks(t, tc.limits, tc.script...)
			if e.ErrorType != tc.kind || !strings.Contains(e.Error, tc.says) {
				t.Errorf("got %s: %q\nwant %s: %q", e.ErrorType, e.Error, tc.kind, tc.says)
			}
			if len(e.Error) > maxText || len(e.Content) > maxText {
				t.Errorf("%d bytes of error, %d of content", len(e.Error), len(e.Content))
			}
		})
	}
}

// trickle sends a token every 20 ms for a minute.
func trickle() fakeserver.Script {
	script := fakeserver.Script{fakeserver.Stream()}
	for range 3000 {
		script = append(script, fakeserver.Send(`data: {"choices":[{"delta":{"reasoning":"x"}}]}`+"\n\n"), fakeserver.Sleep(20*time.Millisecond))
	}
	return script
}

func TestConnectFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().String()
	l.Close()
	plain := newServer(t)
	full := fullListener(t)
	alert := answersBytes(t, "\x15\x03\x03\x00\x02\x02\x28")
	for _, tc := range []struct{ name, url, kind, says string }{
		{"nobody listens", "http://" + free, connectRefused, "the connection to " + free + " was refused"},
		{"accept queue full", "http://" + full, connectTimeout, "no connection within 0."},
		{"TLS server asked in plain", "http://" + alert, tlsFailed, "it speaks TLS"},
		{"plain server asked over TLS", strings.Replace(plain.URL(), "http", "https", 1), tlsFailed, ""},
		{"no such host", "http://whyhang.invalid", connectFailed, "no connection to whyhang.invalid"},
		{"no URL", "127.0.0.1:8000", connectFailed, "not an http or https URL"},
		{"other scheme", "ftp://127.0.0.1", connectFailed, "not an http or https URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limits := Limits{}
			if tc.kind == connectTimeout {
				limits.Connect = 300 * time.Millisecond
			}
			c := &Client{BaseURL: tc.url}
			e := c.Do(context.Background(), Request{Prompt: "p", MaxTokens: 1, Limits: limits})
			if e.ErrorType != tc.kind || !strings.Contains(e.Error, tc.says) || e.HTTPStatus != 0 {
				t.Errorf("got %s: %q\nwant %s: %q", e.ErrorType, e.Error, tc.kind, tc.says)
			}
		})
	}
}

// fullListener is a listener whose accept queue is full, as that of a server
// that accepts no more: the kernel drops further connections.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: name.(*unix.SockaddrInet4).Port}).String()
	for range 3 {
		if c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond); err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}
	return addr
}

// answersBytes is a server that answers the first bytes with these.
func answersBytes(t *testing.T, answer string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte(answer))
			c.Close()
		}
	}()
	return l.Addr().String()
}

// Whoever cancels leaves nothing running on the server.
func TestCancel(t *testing.T) {
	s := newServer(t)
	s.Script(chatPath, fakeserver.Script{fakeserver.Stream(), fakeserver.Send(events(four)), fakeserver.Stall()})
	c := &Client{BaseURL: s.URL()}
	ctx, cancel := context.WithCancel(context.Background())
	heard := make(chan struct{}, 10)
	go func() {
		<-heard
		cancel()
	}()
	e := c.Do(ctx, Request{Prompt: "p", MaxTokens: 32, heard: func() { heard <- struct{}{} }})
	if e.ErrorType != interrupted || e.Content != "4" {
		t.Errorf("%s, content %q", e.ErrorType, e.Content)
	}
	idle(t, s)
	if s.Aborted() != 1 {
		t.Errorf("the server saw %d connections close", s.Aborted())
	}
}

// idle waits until nothing runs on the server.
func idle(t *testing.T, s *fakeserver.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if !s.WaitIdle(ctx) {
		t.Errorf("%d requests still run on the server", s.Running())
	}
}

// selfSigned is a TLS server with a certificate that nobody has signed.
func selfSigned(t *testing.T) *fakeserver.Server {
	t.Helper()
	helper := httptest.NewUnstartedServer(nil)
	helper.StartTLS()
	config := helper.TLS.Clone()
	helper.Close()
	config.NextProtos = []string{"http/1.1"}
	s, err := fakeserver.NewTLS(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

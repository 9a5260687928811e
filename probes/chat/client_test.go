package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/whyhang/whyhang/probes/chat/fakeserver"
)

const secretKey = "very-secret-key-0123456789"

// A server that sends the key back in every way it can think of: the key must
// not reach the evidence.
func TestKeyStaysOut(t *testing.T) {
	cutKey := strings.Repeat("x", maxKept-10) + secretKey // the cut is within the key
	for name, script := range map[string]fakeserver.Script{
		"error body":     fakeserver.Body(401, "application/json", `{"error":"bad key `+secretKey+`"}`),
		"content":        fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"delta":{"content":"4 `+secretKey+`"}}]}`, finish, done)),
		"reasoning":      fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"delta":{"reasoning":"`+secretKey+`","content":"4"}}]}`, finish, done)),
		"cut content":    fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"delta":{"content":"`+cutKey+`"}}]}`, finish, done)),
		"finish reason":  fakeserver.Body(200, "text/event-stream", events(four, `{"choices":[{"finish_reason":"`+secretKey+`"}]}`, done)),
		"matched stop":   fakeserver.Body(200, "text/event-stream", events(four, `{"choices":[{"finish_reason":"stop","matched_stop":"`+secretKey+`"}]}`, done)),
		"stream error":   fakeserver.Body(200, "text/event-stream", events(`{"error":{"message":"`+secretKey+`"}}`)),
		"broken JSON":    fakeserver.Body(200, "text/event-stream", events(secretKey)),
		"no HTTP":        {fakeserver.Send(secretKey + "\r\n\r\n")},
		"redirect":       {fakeserver.Send("HTTP/1.1 307 x\r\nLocation: /" + secretKey + "\r\nContent-Length: 0\r\n\r\n")},
		"unknown model":  fakeserver.Body(404, "application/json", `{"error":{"message":"The model `+secretKey+` does not exist"}}`),
		"abort":          fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"finish_reason":"abort"}],"`+secretKey+`":1}`)),
		"wrong, at last": fakeserver.Body(200, "text/event-stream", events(`{"choices":[{"delta":{"content":"I only know your key, which is `+secretKey+` as you know"}}]}`, finish, done)),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.Script(chatPath, script)
			s.Script("/v1/models", fakeserver.Body(200, "application/json", `{"data":[{"id":"model-`+secretKey+`"}]}`))
			c := &Client{BaseURL: strings.Replace(s.URL(), "http://", "http://user:password-in-url@", 1), APIKey: secretKey}
			check, run := Check(context.Background(), CheckOptions{Client: c})
			b, err := json.Marshal([]any{check, run, c.Do(context.Background(), Request{Prompt: "p", MaxTokens: 2})})
			if err != nil {
				t.Fatal(err)
			}
			for n := len(secretKey); n >= 8; n-- {
				if bytes.Contains(b, []byte(secretKey[:n])) {
					t.Fatalf("the first %d bytes of the key are in the evidence:\n%s", n, b)
				}
			}
			if bytes.Contains(b, []byte("password-in-url")) {
				t.Errorf("the password is in the evidence:\n%s", b)
			}
			if got := s.Requests()[0].Header.Get("Authorization"); got != "Bearer "+secretKey {
				t.Errorf("the server got Authorization %q", got)
			}
		})
	}
}

// A redirect is not followed: the other host would get the key.
func TestRedirect(t *testing.T) {
	other, s := newServer(t), newServer(t)
	for _, path := range []string{"/health", "/v1/models", chatPath} {
		s.Handle(path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL()+r.URL.Path, http.StatusTemporaryRedirect)
		})
	}
	check, _ := Check(context.Background(), CheckOptions{Client: &Client{BaseURL: s.URL(), APIKey: secretKey}})
	if n := len(other.Requests()); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
	if check.HealthStatus != 307 || !strings.Contains(check.Says, "it redirects POST "+chatPath+" to \""+other.URL()) {
		t.Errorf("health %d, %s", check.HealthStatus, check.Says)
	}
}

// A proxy in the environment is not asked.
func TestProxyIsIgnored(t *testing.T) {
	proxy, s := newServer(t), newServer(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4"})
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL())
	}
	// A name that is no loopback address: those never go to a proxy anyway.
	c := &Client{BaseURL: "http://whyhang.invalid", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr())
	}}
	if e := c.Do(context.Background(), Request{Model: "m", Prompt: "p", MaxTokens: 2}); e.Content != "4" {
		t.Errorf("content %q, %s", e.Content, e.Error)
	}
	if n := len(proxy.Requests()); n != 0 {
		t.Errorf("the proxy got %d requests", n)
	}
	if tr := c.transport().Transport.(*http.Transport); tr.Proxy != nil {
		t.Error("the transport has a proxy")
	}
}

func TestHeaders(t *testing.T) {
	s := newServer(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4"})
	c := &Client{BaseURL: s.URL(), UserAgent: "whyhang/test"}
	c.Do(context.Background(), Request{Model: "m", Prompt: "p", MaxTokens: 2, ID: "whyhang-1-2"})
	h := s.Requests()[0].Header
	for name, want := range map[string]string{"User-Agent": "whyhang/test", "X-Request-Id": "whyhang-1-2", "Accept-Encoding": "", "Authorization": "", "Content-Type": "application/json"} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestTLS(t *testing.T) {
	s := selfSigned(t)
	s.Serve(fakeserver.Model{ID: "m", Answer: "4"})
	// The certificate of the target is not verified on its own machine.
	e := (&Client{BaseURL: s.URL()}).Do(context.Background(), Request{Model: "m", Prompt: "p", MaxTokens: 2})
	if e.Content != "4" {
		t.Errorf("content %q, %s %s", e.Content, e.ErrorType, e.Error)
	}
	for url, own := range map[string]bool{"https://127.0.0.1:8000": true, "https://localhost:1": true, "https://[::1]:1": true,
		"https://0.0.0.0:1": true, "https://192.0.2.1": false, "https://example.com": false, "https://localhost.example.com": false} {
		if got := (&Client{BaseURL: url}).ownTarget(); got != own {
			t.Errorf("%s: own target %v", url, got)
		}
	}
	for _, a := range addresses(t) {
		if !(&Client{BaseURL: "https://" + a + ":8000"}).ownTarget() {
			t.Errorf("%s is an address of this machine", a)
		}
	}
}

func addresses(t *testing.T) (all []string) {
	t.Helper()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
			all = append(all, n.IP.String())
		}
	}
	return all
}

func TestBaseURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:1": "http://h:1", "http://h:1/": "http://h:1", "http://h:1/v1": "http://h:1", "http://h:1/v1/": "http://h:1",
		"http://h:1/proxy/v1?x=y#z": "http://h:1/proxy", "http://u:p@h:1/": "http://h:1", "https://[::1]:8000/v1": "https://[::1]:8000",
	} {
		if got := (&Client{BaseURL: in}).PublicURL(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	c := &Client{}
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"a\n b\tc", 80, `"a b c"`},
		{"vier 😀😀", 11, `"vier 😀 …"`},
		{"\x1b[31mred\x07", 80, `"\x1b[31mred\a"`},
		{"\xff", 80, "\"\uFFFD\""},
		{"token hf_abcdefghijklmnopqrstuvwxyz0123", 80, ""},
	} {
		got := c.quote(tc.in, tc.n)
		if tc.want != "" && got != tc.want || strings.Contains(got, "hf_abcdefghij") {
			t.Errorf("%q: %s, want %s", tc.in, got, tc.want)
		}
	}
	if got := c.quote(strings.Repeat("x", 1e6), 100); len(got) > 110 {
		t.Errorf("%d bytes", len(got))
	}
}

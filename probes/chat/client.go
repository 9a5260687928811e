package chat

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxHeaders limits the headers of an answer, in bytes.
const maxHeaders = 64 << 10

// Client is one server and how to reach it. The zero Client with a BaseURL is
// ready for use; it must not be copied or changed after its first request.
type Client struct {
	// BaseURL is the server, with or without "/v1" at the end:
	// "http://127.0.0.1:8000".
	BaseURL string
	// Dial makes connections where the ordinary way does not lead: into the
	// target's network namespace, to a unix socket. It has to obey ctx.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Socket is the path of the unix socket that Dial leads to, for people; BaseURL
	// then has the host that requests name.
	Socket string
	// APIKey is sent as a bearer token, to the base URL's host only.
	APIKey string
	// KeyFrom says where the key comes from, if not from the operator: "its command
	// line (--api-key)".
	KeyFrom string
	// UserAgent is how whyhang shows up in the server's access log; "whyhang"
	// if empty.
	UserAgent string

	once sync.Once
	http *http.Client
	sent atomic.Int64
}

// Sent is how many HTTP requests were begun so far.
func (c *Client) Sent() int { return int(c.sent.Load()) }

// base is the parsed base URL without "/v1".
func (c *Client) base() (*url.URL, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("not an http or https URL with a host")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1")
	u.RawPath, u.RawQuery, u.Fragment = "", "", ""
	return u, nil
}

// PublicURL is the base URL as it may be shown: without user and password.
func (c *Client) PublicURL() string {
	if c.Socket != "" {
		return "unix:" + c.Socket
	}
	u, err := c.base()
	if err != nil {
		return c.clean(c.BaseURL, 256)
	}
	u.User = nil
	return u.String()
}

// transport makes the HTTP client at the first request.
func (c *Client) transport() *http.Client {
	c.once.Do(func() {
		dial := c.Dial
		if dial == nil {
			dial = (&net.Dialer{KeepAlive: -1}).DialContext
		}
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy:       nil, // a proxy of the environment is not the target
				DialContext: dial,
				// One connection for each request: none is left behind, and a
				// server that accepts no more shows itself at once.
				DisableKeepAlives:      true,
				DisableCompression:     true,
				MaxResponseHeaderBytes: maxHeaders,
				ReadBufferSize:         64 << 10,
				TLSClientConfig:        &tls.Config{InsecureSkipVerify: c.ownTarget()},
				// HTTP/1.1 only: what the engines speak, and one stream is one
				// connection, whose end cancels the request.
				TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
			},
			// A redirect is reported: following it would ask somebody else,
			// with the key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return c.http
}

// At is the same server under the public URL at which it was found to answer.
func (c *Client) At(url string) *Client {
	base := url
	if c.Socket != "" {
		base = c.BaseURL
	}
	return &Client{BaseURL: base, Socket: c.Socket, Dial: c.Dial, APIKey: c.APIKey, KeyFrom: c.KeyFrom, UserAgent: c.UserAgent}
}

// OverTLS is the same server asked over https; nil if c does so already.
func (c *Client) OverTLS() *Client {
	u, err := c.base()
	if err != nil || u.Scheme == "https" {
		return nil
	}
	u.Scheme = "https"
	t := c.At(c.BaseURL)
	t.BaseURL = u.String()
	return t
}

// wantsTLS says whether an answer over plain HTTP looks like that of a TLS
// server: an alert, the connection closed at the first byte (uvicorn), or the
// complaint of nginx and of Go's server.
func wantsTLS(status int, body string, f *failure) bool {
	if f != nil {
		return f.kind == tlsFailed || f.kind == closed || f.kind == badHTTP
	}
	return status == 400 && strings.Contains(body, "HTTPS ")
}

// ownTarget says whether the base URL is an address of this machine, or one
// that Dial leads to. There the certificate is not verified: it is made out to
// the name that clients use, not to 127.0.0.1, and who listens on the socket
// is known better from the kernel than from a certificate. Everywhere else it
// is verified, as the key goes over the wire.
func (c *Client) ownTarget() bool {
	if c.Dial != nil {
		return true
	}
	u, err := c.base()
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil {
		return false
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
			return true
		}
	}
	return false
}

// newRequest is a request to a path of the server with the headers every
// request has.
func (c *Client) newRequest(ctx context.Context, method, path string, body *strings.Reader) (*http.Request, error) {
	u, err := c.base()
	if err != nil {
		return nil, err
	}
	u.Path += path
	var r *http.Request
	if body != nil {
		r, err = http.NewRequestWithContext(ctx, method, u.String(), body)
	} else {
		r, err = http.NewRequestWithContext(ctx, method, u.String(), nil)
	}
	if err != nil {
		return nil, fmt.Errorf("not a URL to ask")
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", "whyhang")
	if c.UserAgent != "" {
		r.Header.Set("User-Agent", c.UserAgent)
	}
	if key := strings.TrimSpace(c.APIKey); key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r, nil
}

// milliseconds is d in milliseconds with the microseconds kept: rates are
// computed from these numbers.
func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

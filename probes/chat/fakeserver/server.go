package fakeserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxBody limits the request bodies that are kept, in bytes.
const maxBody = 1 << 20

// Seen is a request that came.
type Seen struct {
	Method, Path string
	Header       http.Header
	Body         string
}

// Server is a running server. Its methods may be used from several goroutines.
type Server struct {
	http     *http.Server
	listener net.Listener
	scheme   string
	closing  chan struct{}

	mu       sync.Mutex
	handlers map[string]http.HandlerFunc
	seen     []Seen
	running  int
	most     int
	aborted  int
	changed  chan struct{} // closed and replaced when running changes
}

// New starts a server on a free port of 127.0.0.1. Every path answers 404
// until it is given something to do.
func New() (*Server, error) { return start(nil) }

// NewTLS is New over TLS with that configuration.
func NewTLS(config *tls.Config) (*Server, error) { return start(config) }

func start(config *tls.Config) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, scheme: "http", closing: make(chan struct{}),
		handlers: map[string]http.HandlerFunc{}, changed: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	if config != nil {
		s.scheme = "https"
		l = tls.NewListener(l, config)
	}
	go func() { _ = s.http.Serve(l) }() // ends with Close
	return s, nil
}

// URL is the base URL, Addr the host and port.
func (s *Server) URL() string  { return s.scheme + "://" + s.Addr() }
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends the server and everything it plays.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	_ = s.listener.Close() // the http.Server does not know it before it serves
	_ = s.http.Close()
}

// Handle lets h answer a path; the method does not matter.
func (s *Server) Handle(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[path] = h
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxBody))
	s.mu.Lock()
	s.seen = append(s.seen, Seen{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: string(body)})
	h := s.handlers[r.URL.Path]
	s.mu.Unlock()
	s.count(1)
	defer s.count(-1)
	if h == nil {
		h = func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusNotFound, map[string]string{"detail": "Not Found"})
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h(w, r)
}

func (s *Server) count(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running += by
	s.most = max(s.most, s.running)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aborted++
}

// Requests are the requests that came, in order.
func (s *Server) Requests() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen(nil), s.seen...)
}

// Running is how many requests are under way, Most the largest such number so
// far, Aborted how many answers ended because the client closed the connection.
func (s *Server) Running() int { s.mu.Lock(); defer s.mu.Unlock(); return s.running }
func (s *Server) Most() int    { s.mu.Lock(); defer s.mu.Unlock(); return s.most }
func (s *Server) Aborted() int { s.mu.Lock(); defer s.mu.Unlock(); return s.aborted }

// WaitIdle waits until no request is under way; false when ctx ends first.
func (s *Server) WaitIdle(ctx context.Context) bool {
	for {
		s.mu.Lock()
		running, changed := s.running, s.changed
		s.mu.Unlock()
		if running == 0 {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

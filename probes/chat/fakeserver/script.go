package fakeserver

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Step is one thing a script does with its connection. False ends the script.
type Step func(*player) (more bool)

// Script is the steps of one answer, from the status line on. When they are
// over the connection is closed.
type Script []Step

// player is one script being played.
type player struct {
	conn net.Conn
	// gone ends when the client closes the connection; closing when the
	// server does.
	gone, closing <-chan struct{}
}

// Send sends these bytes as they are.
func Send(text string) Step {
	return func(p *player) bool {
		_, err := p.conn.Write([]byte(text))
		return err == nil
	}
}

// Repeat sends text again and again, n times or, with n < 0, until the client
// has gone.
func Repeat(n int, text string) Step {
	return func(p *player) bool {
		b := []byte(text)
		for i := 0; n < 0 || i < n; i++ {
			if _, err := p.conn.Write(b); err != nil {
				return false
			}
		}
		return true
	}
}

// Sleep waits, unless the client goes first.
func Sleep(d time.Duration) Step {
	return func(p *player) bool {
		select {
		case <-time.After(d):
			return true
		case <-p.gone:
		case <-p.closing:
		}
		return false
	}
}

// Stall does nothing until the client goes or the server is closed.
func Stall() Step {
	return func(p *player) bool {
		select {
		case <-p.gone:
		case <-p.closing:
		}
		return false
	}
}

// Close closes the connection in an orderly way; Reset with a TCP reset.
func Close() Step { return func(*player) bool { return false } }

// Reset resets the connection.
func Reset() Step {
	return func(p *player) bool {
		if tcp, ok := p.conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	}
}

// Head is a status line and headers whose body ends with the connection.
func Head(status int, contentType string) Step {
	return Send(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", status, http.StatusText(status), contentType))
}

// Stream is Head of an event stream; Event one event of it.
func Stream() Step { return Head(http.StatusOK, "text/event-stream") }

// Event sends data as one event, a data line for each line of it.
func Event(data string) Step {
	return Send("data: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n")
}

// ChunkedStream is Stream with chunked transfer encoding; every Chunk after it
// is one chunk of the transfer, Chunk("") the last.
func ChunkedStream() Step {
	return Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
}

// Chunk sends text as one chunk of the transfer.
func Chunk(text string) Step { return Send(fmt.Sprintf("%x\r\n%s\r\n", len(text), text)) }

// Body is a whole answer.
func Body(status int, contentType, body string) Script {
	return Script{Head(status, contentType), Send(body)}
}

// Script lets a path play scripts: the first request the first one, and so on;
// the last one is played again for every request after that.
func (s *Server) Script(path string, turns ...Script) {
	var mu sync.Mutex
	next := 0
	s.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		turn := turns[next]
		next = min(next+1, len(turns)-1)
		mu.Unlock()
		s.play(w, turn)
	})
}

// play takes the connection over, so that every byte of the answer is the
// script's.
func (s *Server) play(w http.ResponseWriter, script Script) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	gone := make(chan struct{})
	go awaitClose(buffered.Reader, gone)
	p := &player{conn: conn, gone: gone, closing: s.closing}
	for _, step := range script {
		if !step(p) {
			break
		}
	}
	select {
	case <-gone:
		s.abort()
	default:
	}
}

// awaitClose reads until the client closes: a client that has asked sends
// nothing more.
func awaitClose(r *bufio.Reader, gone chan<- struct{}) {
	defer close(gone)
	for {
		if _, err := r.ReadByte(); err != nil {
			return
		}
	}
}

package chat

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// The ways a request can fail: the values of Exchange.ErrorType.
const (
	connectRefused  = "connect_refused"   // nobody listens there
	connectTimeout  = "connect_timeout"   // no answer to the connection
	connectFailed   = "connect_failed"    // any other failure to connect
	tlsFailed       = "tls"               // no TLS, or not the TLS that was expected
	closed          = "closed"            // connection ended before an answer line
	badHTTP         = "bad_http"          // an answer that is no HTTP, or headers without end
	http3xx         = "http_3xx"          // a redirect, which is not followed
	http4xx         = "http_4xx"          // refused
	http5xx         = "http_5xx"          // failed
	headersTimeout  = "headers_timeout"   // connected, no answer line in time
	ttftTimeout     = "ttft_timeout"      // headers, no text in time
	stall           = "stall"             // text, then none for too long
	streamError     = "stream_error"      // an error object after HTTP 200
	truncated       = "truncated"         // ended without finish_reason and [DONE]
	noTokens        = "no_tokens"         // ended as it should, without any text
	badJSON         = "bad_json"          // an event of the stream is no JSON
	notOpenAI       = "not_openai"        // HTTP 200, and no answer of this interface
	tooLong         = "too_long"          // goes on beyond max_tokens or the limits of bytes
	abortedByServer = "aborted_by_server" // finish_reason "abort" or "error"
	requestTimeout  = "request_timeout"   // text flows, the time for the whole is over
	interrupted     = "interrupted"       // whyhang was told to stop
)

// failure is why a request did not end as it should.
type failure struct {
	kind string
	says string // one sentence, no final period
}

func (f *failure) Error() string { return f.says }

func failuref(kind, format string, args ...any) *failure {
	return &failure{kind: kind, says: fmt.Sprintf(format, args...)}
}

// errGiveUp as the cause of a cancelled context says that waiting any longer
// is pointless: what came next and did not come is then the failure.
var errGiveUp = errors.New("nothing moves")

// transportFailure says what an error of the HTTP transport means. host is
// for the text.
func transportFailure(err error, host string) *failure {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err // its own text repeats the URL
	}
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	text := err.Error()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return failuref(connectRefused, "the connection to %s was refused", host)
	case errors.Is(err, http.ErrSchemeMismatch):
		return failuref(tlsFailed, "it was asked over https and answers plain HTTP")
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert),
		strings.Contains(text, "TLS handshake"), strings.HasPrefix(text, "tls: "), strings.HasPrefix(text, "remote error: tls: "):
		return failuref(tlsFailed, "the TLS handshake failed: %s", text)
	case strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return failuref(tlsFailed, "it speaks TLS and was asked over plain HTTP: use --url https://%s", host)
	case errors.As(err, &dial) && dial.Op == "dial":
		if dial.Timeout() {
			return failuref(connectTimeout, "no connection to %s: %s", host, innermost(err))
		}
		return failuref(connectFailed, "no connection to %s: %s", host, innermost(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(text, "server closed idle connection"):
		return failuref(closed, "it closed the connection without an answer")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failuref(closed, "it reset the connection without an answer")
	case strings.Contains(text, "malformed"), strings.Contains(text, "exceeded MaxResponseHeaderBytes"), strings.Contains(text, "HTTP"), strings.Contains(text, "http"):
		return failuref(badHTTP, "its answer is no HTTP: %s", text)
	}
	return failuref(connectFailed, "no answer from %s: %s", host, text)
}

// innermost is the errno in words, or the error's own text.
func innermost(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// contextFailure says what the end of a request's context means: a limit of
// the watch, the end of the time for the whole, or somebody's wish.
func contextFailure(ctx context.Context, w *watch) *failure {
	cause := context.Cause(ctx)
	var limit *failure
	switch {
	case errors.As(cause, &limit):
		return limit
	case errors.Is(cause, errGiveUp):
		return w.missing()
	case errors.Is(cause, context.DeadlineExceeded):
		if w.flowing() {
			return failuref(requestTimeout, "not finished within %s, after %s", seconds(w.elapsed()), w.count())
		}
		return w.missing()
	}
	return failuref(interrupted, "interrupted")
}

// seconds is a duration for the operator: "12 ms", "0.4 s", "10 s".
func seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s < 0.095:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case s >= 9.95:
		return fmt.Sprintf("%.0f s", s)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", s), ".0") + " s"
}

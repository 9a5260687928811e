package chat

import (
	"context"
	"errors"
	"time"
)

// Get asks for a small body of the server within limit, with the client's key; size
// bounds the body in bytes. A redirect is an answer like any other and is not
// followed.
func (c *Client) Get(ctx context.Context, path string, limit time.Duration, size int64) (status int, body []byte, err error) {
	status, body, f := c.get(ctx, path, limit, size)
	if f != nil {
		return 0, nil, f
	}
	return status, body, nil
}

// TimedOut says whether an error of Get is that nothing came in time.
func TimedOut(err error) bool {
	var f *failure
	return errors.As(err, &f) && (f.kind == headersTimeout || f.kind == connectTimeout)
}

// SpeaksTLS says whether what Get came to over plain HTTP looks like a server that
// speaks TLS.
func SpeaksTLS(status int, body []byte, err error) bool {
	var f *failure
	errors.As(err, &f)
	return wantsTLS(status, errorText(body), f)
}
